"""Compares the database's roles, rights, policies and functions with what the code declares."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from apps.core.db.verify import differences


class Command(BaseCommand):
    help = "Print every difference between the database and the declarations; exit 2 when there is any."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="One JSON array on standard output.")

    def handle(self, *args: Any, **options: Any) -> None:
        found = differences()
        if options["json"]:
            self.stdout.write(json.dumps([difference.document() for difference in found]))
        else:
            for difference in found:
                self.stdout.write(str(difference))
            self.stdout.write(f"{len(found)} differences." if found else "No difference.")
        if found:
            sys.exit(2)
