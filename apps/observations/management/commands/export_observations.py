"""The owner's export into a new file, under the owner's own token."""

import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, NoReturn

from django.core.management.base import BaseCommand

from apps.accounts.credentials import caller_of_bearer
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session
from apps.core.problems import Forbidden
from apps.observations import gate
from apps.observations.models.exports import Location
from apps.observations.services.exports import export, write_file

TOKEN = "OBSERVATION_EXPORT_TOKEN"
SCOPE = "export"
FAILED = "The export failed; no file was left."


class Command(BaseCommand):
    help = (
        "Write your own shared queries that are kept as text to a new file of mode 0600. The token comes from "
        f"{TOKEN} and needs the scope `{SCOPE}`. Delete every copy by its `expires_at`. Exit 2 on any failure."
    )

    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="A path that does not exist yet.")

    def handle(self, *args: Any, **options: Any) -> None:
        token = os.environ.get(TOKEN, "")
        if not token or os.path.lexists(options["file"]):
            self._fail()
        try:
            count = self._export(token, options["file"])
        except Exception:
            # One message for all: neither a driver's words nor a query may end on a terminal.
            self._fail()
        self.stdout.write(str(count))

    def _export(self, token: str, path: Path) -> int:
        caller = _caller(token)
        gate.require_open()
        written = False
        try:
            # The file inside the transaction: no export is recorded that was not written.
            with principal_session(caller):
                found = export(location=Location.FILE)
                write_file(path, found.body)
                written = True
        except BaseException:
            if written:
                path.unlink(missing_ok=True)
            raise
        return found.count

    def _fail(self) -> NoReturn:
        self.stderr.write(FAILED)
        sys.exit(2)


def _caller(token: str) -> PrincipalIdentity:
    """Raises for whatever is no valid token of a principal with the scope."""
    found = caller_of_bearer(f"Bearer {token}")
    if not isinstance(found.identity, PrincipalIdentity) or SCOPE not in found.scopes:
        raise Forbidden
    return found.identity
