"""The restore gate of the journal: close, drain, open."""

import getpass
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractBaseUser
from django.core.management.base import BaseCommand, CommandError

from apps.core.problems import Problem
from apps.observations.services import restore
from apps.operations.erasure.lines import DamagedLine
from apps.operations.erasure.restore import NoReplay
from apps.operations.expiry import ExpiryFailed

REFUSED = {
    "overdue_rows_left": "rows past their deadlines are left; run drain again",
    "certificates_missing": "erasures of the file are not complete; run drain again",
    "not_drained": "this database was not drained; run drain first",
    "roles_differ": "the database is not as declared; verify_roles lists the differences",
}


class Command(BaseCommand):
    help = (
        "close: before a restore. drain: after it, before any process starts, delete what is due and replay the "
        "erasure file. open: two persons open the journal for this database."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        steps = parser.add_subparsers(dest="step", required=True)
        steps.add_parser("close")
        drain = steps.add_parser("drain")
        drain.add_argument("--erasures", type=Path, required=True, help="The erasure file, newest copy.")
        opening = steps.add_parser("open")
        opening.add_argument("--first", required=True, help="User name; the password is asked for.")
        opening.add_argument("--second", required=True, help="User name of another person.")
        opening.add_argument("--reason", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.stdout.write(getattr(self, f"_{options['step']}")(options))
        except restore.GateRefused as refused:
            raise CommandError(f"Refused: {REFUSED.get(refused.code, refused.code)}.") from None
        except (DamagedLine, NoReplay, OSError, ExpiryFailed) as failure:
            raise CommandError(f"Not drained: {type(failure).__name__} {failure}") from None
        except Problem as problem:
            raise CommandError(f"Refused: {problem.shown_code}.") from None

    def _close(self, options: dict[str, Any]) -> str:
        restore.close_gate()
        return "The journal is closed."

    def _drain(self, options: dict[str, Any]) -> str:
        return f"Drained; {restore.drain(options['erasures'])} erasures ran again."

    def _open(self, options: dict[str, Any]) -> str:
        first, second = (self._person(options[name]) for name in ("first", "second"))
        restore.open_gate(first=first, second=second, reason=options["reason"])
        return "The journal is open for this database."

    def _person(self, name: str) -> AbstractBaseUser:
        """One message for all that is wrong with a name or a password."""
        person = get_user_model().objects.filter(username=name, is_active=True, is_staff=True).first()
        password = getpass.getpass(f"Password of {name}: ")
        if person is None or not person.check_password(password):
            raise CommandError("Refused: name and password do not belong together.")
        return person
