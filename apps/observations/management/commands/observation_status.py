"""How the journal's upkeep stands, for monitors: one line of JSON, and an exit code."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import BaseCommand

from apps.observations import status

CONNECT_SECONDS = 5


class Command(BaseCommand):
    help = (
        "Read the status as the monitors' login (MONITOR_DATABASE_URL). Exit 0: no alarm. 1: only overdue rows that "
        "the next run may delete. 2: alarm. 3: no answer. Every exit but 0 is an alarm."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--strict", action="store_true", help="Exit 2 in place of 1.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            reading = self._read()
        except Exception:
            # Whatever it was: no answer is an alarm, and a driver's words stay here.
            self.stdout.write(json.dumps({"status": "unknown"}))
            sys.exit(status.UNKNOWN)
        self.stdout.write(json.dumps(reading.document(), separators=(",", ":")))
        sys.exit(reading.exit_code(strict=options["strict"]))

    def _read(self) -> status.Reading:
        if not settings.MONITOR_DATABASE_URL:
            raise LookupError("no address")
        options = f"-c statement_timeout={status.LIMIT_MS} -c lock_timeout={status.LIMIT_MS}"
        with (
            psycopg.connect(
                settings.MONITOR_DATABASE_URL, connect_timeout=CONNECT_SECONDS, options=options
            ) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SET ROLE memory_monitor")
            return status.read_with(cursor)
