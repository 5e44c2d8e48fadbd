"""Replay exported PRME receipts and count those that drift."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.core import canonical
from apps.retrieval.prme.exceptions import PrmeError, ReplayMismatch
from apps.retrieval.prme.reading import read_lines, read_receipt_line


class Command(BaseCommand):
    help = (
        "Verify and replay every receipt of a .jsonl or .jsonl.gz file, without the database. "
        "Exit 0: all replay exactly (version 1 cannot be replayed and is counted apart). "
        "Exit 1: a score or an order is not reproduced. Exit 2: a line is no valid receipt, or no file."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--file", required=True, type=Path, action="append", help="may be repeated")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        counts: Counter[str] = Counter(receipts=0, replayed=0, not_replayable=0, drifted=0, refused=0)
        for path in options["file"]:
            try:
                self._count(path, counts)
            except (OSError, PrmeError) as error:
                reason = error.detail if isinstance(error, PrmeError) else "the file cannot be read"
                raise CommandError(f"{path.name}: {reason}", returncode=2) from None
        if options["json"]:
            self.stdout.write(canonical.dumps(dict(counts)).decode())
        else:
            for name, count in counts.items():
                self.stdout.write(f"{name.replace('_', ' ')}: {count}")
        if counts["drifted"] or counts["refused"]:
            sys.exit(1 if counts["drifted"] else 2)

    def _count(self, path: Path, counts: Counter[str]) -> None:
        for number, line in read_lines(path):
            counts["receipts"] += 1
            try:
                receipt = read_receipt_line(line)
            except PrmeError as error:
                counts["drifted" if isinstance(error, ReplayMismatch) else "refused"] += 1
                self.stderr.write(f"{path.name} line {number}: {error.code}: {error}")
            else:
                counts["replayed" if receipt.can_replay else "not_replayable"] += 1
