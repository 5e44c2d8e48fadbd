"""Shows in a disposable database what activation asks of it: the machine's half of B7, B8 and B9."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from apps.observations.rehearsal import alarms, disposable, restoring
from apps.observations.rehearsal.disposable import RehearsalRefused
from apps.observations.rehearsal.posted import Shown
from apps.observations.services.restore import GateRefused
from apps.operations.expiry import ExpiryFailed
from memory_platform.embedded import connection_urls
from memory_platform.environment import environment

STEPS = {
    "flag": "mark an empty database as disposable; type its name",
    "alarms": "let the alarms of B7 and B8 go off in it, and print what is to be posted",
    "restore": "restore a copy of it (B9), drop the copy, and print what is to be posted; needs DATABASE_ADMIN_URL",
}


class Command(BaseCommand):
    help = (
        "Rehearsals of the journal, in a database that was marked as disposable and nowhere else. Needs DATABASE_URL "
        "and DATABASE_OWNER_URL of it. " + "; ".join(f"{name}: {what}" for name, what in STEPS.items()) + "."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("step", choices=STEPS)
        parser.add_argument("--name", default="", help="Of flag: the name of the database.")
        parser.add_argument(
            "--run", type=UUID, help="Of alarms and restore: the activation run that the evidence is for."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["step"] == "flag":
                self._flag(options["name"])
                return
            with self._owner() as owner:
                disposable.require_disposable(owner)
            if options["run"] is None:
                raise CommandError(f"{options['step']} needs --run.")
            for shown in getattr(self, f"_{options['step']}")():
                self.stdout.write(json.dumps(shown.body(options["run"])))
        except RehearsalRefused as refused:
            raise CommandError(str(refused)) from None
        except GateRefused as refused:
            raise CommandError(f"The drill stopped: the gate refused, {refused.code}.") from None
        except ExpiryFailed as failed:
            raise CommandError(f"The rehearsal stopped: cleanup failed, {failed.code}.") from None

    def _flag(self, name: str) -> None:
        with self._owner() as owner:
            disposable.flag(owner, name)
        self.stdout.write(f"Database {name} is disposable.")

    def _alarms(self) -> Iterator[Shown]:
        with self._owner() as owner:
            yield alarms.missed_run(owner)
            yield alarms.silence(owner)

    def _restore(self) -> Iterator[Shown]:
        urls = connection_urls(environment())
        if not urls.admin:
            raise CommandError("DATABASE_ADMIN_URL is not set: a login that may create databases is needed.")
        yield restoring.drill(urls.owner, urls.admin)

    @contextmanager
    def _owner(self) -> Iterator[Any]:
        url = connection_urls(environment()).owner
        if not url:
            raise CommandError("DATABASE_OWNER_URL is not set.")
        with psycopg.connect(url, autocommit=True) as owner:
            if owner.info.dbname != settings.DATABASES["default"]["NAME"]:
                raise CommandError("DATABASE_URL and DATABASE_OWNER_URL name two databases.")
            yield owner
