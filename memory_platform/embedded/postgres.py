"""The embedded PostgreSQL: prepare a data folder, run the server in the foreground, know its URLs."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from memory_platform.embedded.binaries import NEWEST_MAJOR, postgres_home
from memory_platform.embedded.directories import SHORT_PREFIX, data_directory, socket_directory
from memory_platform.embedded.exceptions import EmbeddedError, StartFailed, WrongDataVersion
from memory_platform.embedded.leftovers import POLL_SECONDS, remove_reused_locks, wait_until_unused
from memory_platform.embedded.postgres_settings import FILE_NAME, settings_text
from memory_platform.embedded.private_files import generated_secrets
from memory_platform.embedded.processes import RunningServer
from memory_platform.embedded.system_user import SystemUser, postgres_user

SOCKET_PORT = 5432  # names the socket file; nothing listens on it
DATABASE = "memory"
LOCK_SECONDS = 20.0
START_SECONDS = 60.0
FIRST_MAJOR_WITH_BUILTIN_LOCALE = 17


class EmbeddedPostgres:
    """One PostgreSQL server on a unix socket, or with `tcp_port` on 127.0.0.1 as well.

    `data_dir` and `run_dir` (sockets) are made when absent; where one cannot serve, because its path is too
    long for a socket or the server's user cannot reach it, it becomes a link to a folder that can.
    `secrets_file` holds the passwords of the logins admin, owner, app, probe. Only tests that may lose their
    data give `durable=False`.
    """

    def __init__(
        self,
        data_dir: Path | str,
        run_dir: Path | str,
        version: int = NEWEST_MAJOR,
        tcp_port: int | None = None,
        *,
        secrets_file: Path | None = None,
        durable: bool = True,
    ) -> None:
        self.wished_data = Path(data_dir).absolute()
        self.wished_run = Path(run_dir).absolute()
        self.version = version
        self.tcp_port = tcp_port
        self.durable = durable
        self.user: SystemUser = postgres_user()
        self.secrets_file = secrets_file or self.wished_data.with_name(
            f"{self.wished_data.name}.secrets.json"
        )
        self.log_file = self.wished_data.with_name(f"{self.wished_data.name}.log")
        self._server = RunningServer(self.log_file, "SIGINT")  # SIGINT asks for a fast shutdown

    @property
    def port(self) -> int:
        return self.tcp_port or SOCKET_PORT

    @property
    def data(self) -> Path:
        """Where the data really lies."""
        return data_directory(self.wished_data, self.user)

    @property
    def sockets(self) -> Path:
        """Where the socket really lies."""
        return socket_directory(self.wished_run, self.user, f".s.PGSQL.{self.port}")

    @property
    def home(self) -> Path:
        return postgres_home(self.version, self.user)

    def prepare(self) -> None:
        """Make the data folder unless it exists, write the settings, clear what a crash left.

        Raises WrongDataVersion for data of another major version, StartFailed when another server still
        works in the folder.
        """
        data, sockets = self.data, self.sockets
        if (data / "PG_VERSION").exists():
            self._refuse_other_version(data)
        else:
            self._initialise(data)
        if not wait_until_unused(data, LOCK_SECONDS):
            raise StartFailed(f"Another PostgreSQL still works in {self.wished_data}. Stop it first.")
        remove_reused_locks(data, sockets)
        settings = data / FILE_NAME
        settings.write_text(settings_text(durable=self.durable), encoding="utf-8")
        settings.chmod(0o600)
        self.user.own(settings)

    def command(self) -> list[str]:
        """The foreground process of the server, to be started as `self.user`; `prepare` came before."""
        folder = str(self.sockets).replace('"', '""')
        options = {
            "unix_socket_directories": f'"{folder}"',
            "unix_socket_permissions": "0700",
            "listen_addresses": "127.0.0.1" if self.tcp_port else "",
            "port": str(self.port),
        }
        arguments = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        return [str(self.home / "bin" / "postgres"), "-D", str(self.data), *arguments]

    def environment(self) -> dict[str, str]:
        """What the server's process may know: nothing of the application's secrets."""
        return {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC", "HOME": str(self.data)}

    def start(self) -> None:
        """Prepare, start and wait until the server answers. Raises StartFailed with the end of its log."""
        self.prepare()
        self._server.start(self.command(), env=self.environment(), **self.user.popen_options())
        self._server.wait_for(self.answers, START_SECONDS)

    def stop(self) -> None:
        """Stop the server and wait for its end; nothing happens when it does not run."""
        self._server.stop()

    def destroy(self) -> None:
        """Stop, and remove the data and sockets wherever they lie."""
        self.stop()
        for wished in (self.wished_data, self.wished_run):
            target = wished.resolve()
            shutil.rmtree(target, ignore_errors=True)
            if wished.is_symlink():
                wished.unlink()
                if wished is self.wished_data:
                    target.parent.rmdir()

    def answers(self) -> bool:
        try:
            psycopg.connect(self.url("admin", "postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def url(self, login: str = "app", database: str = DATABASE) -> str:
        """The connection URL of `app`, `owner`, `admin` or `probe`: role `memory_<login>` and its password.

        The passwords exist from the start; only `memory_admin` does as a role, until roles are provisioned.
        """
        password = generated_secrets(self.secrets_file)[login]
        credentials = f"memory_{login}:{quote(password, safe='')}"
        if self.tcp_port:
            return f"postgresql://{credentials}@127.0.0.1:{self.tcp_port}/{quote(database, safe='')}"
        host = quote(str(self.sockets), safe="")
        return f"postgresql://{credentials}@/{quote(database, safe='')}?host={host}&port={self.port}"

    def ensure_database(self, name: str = DATABASE) -> None:
        """Create the database unless it exists. Its owner and grants come with the roles."""
        with psycopg.connect(self.url("admin", "postgres"), autocommit=True) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone()
            if not found:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))

    def _refuse_other_version(self, data: Path) -> None:
        found = (data / "PG_VERSION").read_text().strip()
        if found != str(self.version):
            raise WrongDataVersion(
                f"{self.wished_data} holds data of PostgreSQL {found}; this release runs {self.version}. "
                f"Dump it with the release that made it and restore it here, or run make clean to lose it."
            )

    def _initialise(self, data: Path) -> None:
        """Make the folder beside its place and move it there, so that half a folder is never used."""
        if data.exists() and any(data.iterdir()):
            raise EmbeddedError(f"{self.wished_data} holds something, but no PostgreSQL data. Move it away.")
        draft = data.with_name(f"{data.name}.making")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        self.user.own(draft)
        descriptor, name = tempfile.mkstemp(dir=data.parent)
        password_file = Path(name)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(generated_secrets(self.secrets_file)["admin"] + "\n")
            self.user.own(password_file)
            self._run_initdb(draft, password_file)
        finally:
            password_file.unlink()
        with (draft / "postgresql.conf").open("r+") as configuration:
            defaults = configuration.read()
            configuration.seek(0)
            configuration.write(f"{defaults}\ninclude '{FILE_NAME}'\n")
        if data.exists():
            data.rmdir()
        draft.rename(data)

    def _run_initdb(self, draft: Path, password_file: Path) -> None:
        command = [str(self.home / "bin" / "initdb"), "-D", str(draft), "--username=memory_admin"]
        command += [
            f"--pwfile={password_file}",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--data-checksums",
        ]
        command += ["--no-instructions", "--locale=C"]
        if self.version >= FIRST_MAJOR_WITH_BUILTIN_LOCALE:
            command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        else:
            command += ["--lc-ctype=C.UTF-8"]
        made = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env=self.environment() | {"HOME": "/"},
            **self.user.popen_options(),
        )
        if made.returncode != 0:
            raise StartFailed(f"initdb failed for {self.wished_data}:\n{made.stderr.strip()}")


@contextmanager
def temporary_postgres(
    version: int = NEWEST_MAJOR, tcp_port: int | None = None, *, durable: bool = False
) -> Iterator[EmbeddedPostgres]:
    """A running server in a folder of its own that is gone afterwards; for tests and benchmarks."""
    folder = Path(tempfile.mkdtemp(prefix=f"{SHORT_PREFIX}postgres-"))
    folder.chmod(0o711)
    server = EmbeddedPostgres(folder / "data", folder / "run", version, tcp_port, durable=durable)
    try:
        server.start()
        yield server
    finally:
        server.destroy()
        shutil.rmtree(folder, ignore_errors=True)


def wait_for_login(url: str, seconds: float) -> None:
    """Wait until a server accepts the URL. Raises StartFailed, without the URL or the driver's message."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise StartFailed("PostgreSQL did not accept the login in time.") from None
            time.sleep(POLL_SECONDS)
        else:
            return
