"""One installation: the folder `var/` with data, sockets, secrets, and the URLs of its servers."""

import json
import os
from pathlib import Path

from memory_platform.embedded.postgres import DATABASE, EmbeddedPostgres
from memory_platform.embedded.private_files import generated_secrets, write_private
from memory_platform.embedded.urls import CONNECTIONS_FILE
from memory_platform.embedded.valkey import EmbeddedValkey

LOGINS = ("app", "owner", "admin", "probe")


class Installation:
    """What lies in `var/`. Files with secrets have mode 0600; the folder lets the servers' user pass only."""

    def __init__(self, var: Path) -> None:
        self.var = var.absolute()
        self.run = self.var / "run"
        self.logs = self.var / "log"
        self.secrets_file = self.var / "secrets.json"
        self.erasure_file = self.var / "erasures.jsonl"
        self.postgres = EmbeddedPostgres(
            self.var / "postgres", self.run / "postgres", secrets_file=self.secrets_file
        )
        self.valkey = EmbeddedValkey(self.var / "valkey", self.run / "valkey")

    def prepare(self) -> None:
        """Make the folders and secrets. Servers and commands may be started afterwards, in any order."""
        for folder in (self.var, self.run):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o711 if self.postgres.user.is_another else 0o700)
        self.logs.mkdir(exist_ok=True)
        self.logs.chmod(0o700)
        generated_secrets(self.secrets_file)
        # Outside the database and its backups: what was erased must stay so after a restore.
        os.close(os.open(self.erasure_file, os.O_WRONLY | os.O_CREAT, 0o600))

    def secret_key(self) -> str:
        return generated_secrets(self.secrets_file)["secret_key"]

    def write_connections(self) -> dict[str, str]:
        """Write the URLs of the logins and of the broker, for commands that a person starts."""
        urls = {login: self.postgres.url(login, DATABASE) for login in LOGINS}
        urls["broker"] = self.valkey.url
        write_private(self.var / CONNECTIONS_FILE, json.dumps(urls, indent=2) + "\n")
        return urls
