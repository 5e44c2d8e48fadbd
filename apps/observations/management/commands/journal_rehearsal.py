"""Shows in a disposable database that the journal's alarms go off: the machine's half of B7 and B8."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from psycopg import sql

from apps.core import clock
from apps.observations import retention, status
from apps.operations import expiry, watch
from apps.operations.models import Alarm
from memory_platform.embedded import connection_urls
from memory_platform.environment import environment

FLAG = "disposable"
MOVED_BACK = "31 minutes"
SOURCE = f"expiry:{retention.NAME}"
METHOD = "rehearsal.1"
STATE = "observations_maintenance_state"
FLAGGED = "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = current_database()"
STEPS = {
    "flag": "mark an empty database as disposable; type its name",
    "alarms": "let the alarms of B7 and B8 go off in it, and print what is to be posted",
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
            "--run", type=UUID, help="Of alarms: the activation run that the evidence is for."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        with self._owner() as owner:
            if options["step"] == "flag":
                self.stdout.write(_flag(owner, options["name"]))
                return
            _require_disposable(owner)
            if options["run"] is None:
                raise CommandError("alarms needs --run.")
            for item, measured in (("B7", _missed_run(owner)), ("B8", _silence(owner))):
                self.stdout.write(json.dumps(_posted(options["run"], item, measured)))

    @contextmanager
    def _owner(self) -> Iterator[Any]:
        url = connection_urls(environment()).owner
        if not url:
            raise CommandError("DATABASE_OWNER_URL is not set.")
        with psycopg.connect(url, autocommit=True) as owner:
            if owner.info.dbname != settings.DATABASES["default"]["NAME"]:
                raise CommandError("DATABASE_URL and DATABASE_OWNER_URL name two databases.")
            yield owner


def _flag(owner: Any, name: str) -> str:
    """What holds records of anybody is not disposable."""
    if name != owner.info.dbname:
        raise CommandError("Type the name of the database that DATABASE_URL names, with --name.")
    if owner.execute("SELECT EXISTS (SELECT FROM observations_observation)").fetchone()[0]:
        raise CommandError("Refused: this database has records.")
    owner.execute(sql.SQL("COMMENT ON DATABASE {} IS {}").format(sql.Identifier(name), sql.Literal(FLAG)))
    return f"Database {name} is disposable."


def _require_disposable(owner: Any) -> None:
    if owner.execute(FLAGGED).fetchone()[0] != FLAG:
        raise CommandError("Refused: this database is not marked as disposable.")


def _missed_run(owner: Any) -> dict[str, Any]:
    """B7: upkeep ran, its heartbeat is moved back, the alarm opens; it runs again, the alarm closes."""
    expiry.drain(retention.NAME)
    owner.execute(f"UPDATE {STATE} SET last_success_at = last_success_at - %s::interval", [MOVED_BACK])
    seconds = float(status.read().values["seconds_since_success"])
    alarm = _opened("success_stale")
    expiry.drain(retention.NAME)
    return {
        "disposable": True,
        "seconds_since_success": round(seconds),
        "alarm": alarm,
        "closed": _closed(alarm),
    }


def _silence(owner: Any) -> dict[str, Any]:
    """B8: no data at all, and a status that nobody can read."""
    # An installation that is new is given the time of two runs before a first one counts as missed.
    owner.execute(
        "UPDATE operations_expirystate SET known_since = known_since - %s::interval WHERE name = %s",
        [MOVED_BACK, retention.NAME],
    )
    owner.execute(f"UPDATE {STATE} SET last_success_at = NULL")
    no_data = _opened("never_succeeded")
    expiry.drain(retention.NAME)
    revoke = "REVOKE EXECUTE ON FUNCTION observations_status() FROM memory_monitor"
    owner.execute(revoke)
    try:
        unread = _opened(watch.STATUS_UNKNOWN)
    finally:
        owner.execute(revoke.replace("REVOKE", "GRANT").replace("FROM", "TO"))
    closed = _closed(no_data) and _closed(unread)
    return {"disposable": True, "no_data_alarm": no_data, "query_failure_alarm": unread, "closed": closed}


def _opened(reason: str) -> str | None:
    """The alarm that a round of the watch opens; None where it opens none."""
    watch.check_expiry()
    found = Alarm.objects.filter(source=SOURCE, reason=reason, resolved_at=None)
    alarm = found.values_list("pk", flat=True).first()
    return alarm.hex if alarm else None  # with dashes the filter of evidence refuses it


def _closed(alarm: str | None) -> bool:
    watch.check_expiry()
    return alarm is not None and Alarm.objects.filter(pk=alarm).exclude(resolved_at=None).exists()


def _posted(run: UUID, item: str, measured: dict[str, Any]) -> dict[str, Any]:
    """The body of `POST /v1/observations/evidence`."""
    passed = measured["closed"] and all(value is not None for value in measured.values())
    return {
        "run_id": str(run),
        "item": item,
        "result": "pass" if passed else "fail",
        "release": settings.RELEASE,
        "observed_at": clock.iso(clock.now()),
        "method": METHOD,
        "measured": measured,
    }
