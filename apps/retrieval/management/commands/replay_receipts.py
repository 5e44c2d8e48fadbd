"""Replay stored receipts, or exported PRME ones, and count those that drift."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from apps.accounts import subjects
from apps.accounts.services import workspace_id
from apps.core import canonical
from apps.core.problems import InvalidRequest, NotFound
from apps.retrieval import all_receipts
from apps.retrieval.prme.exceptions import PrmeError, ReplayMismatch
from apps.retrieval.prme.reading import read_lines, read_receipt_line


class Command(BaseCommand):
    help = (
        "Verify and replay every stored receipt, native and imported, of all principals or of those named; "
        "with --file, every receipt of a .jsonl or .jsonl.gz file that PRME exported, without the database. "
        "Exit 0: all replay exactly (version 1 of PRME cannot be replayed and is counted apart). Exit 1: one does "
        "not hold, or does not give its scores or its order. Exit 2: a line is no valid receipt, or no such file or "
        "workspace. Nothing is changed."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--file", type=Path, action="append", default=[], help="may be repeated")
        parser.add_argument("--workspace", help="slug: its principals alone")
        parser.add_argument("--principal", help="subject; a bare name is token:NAME")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        counts: Counter[str] = Counter(receipts=0, replayed=0, not_replayable=0, drifted=0)
        if options["file"]:
            self._files(options["file"], counts)
        else:
            self._stored(options["workspace"], options["principal"], counts)
        if options["json"]:
            self.stdout.write(canonical.dumps(dict(counts)).decode())
        else:
            for name, count in counts.items():
                self.stdout.write(f"{name.replace('_', ' ')}: {count}")
        if counts["drifted"] or counts["refused"]:
            sys.exit(1 if counts["drifted"] else 2)

    def _stored(self, workspace: str | None, principal: str | None, counts: Counter[str]) -> None:
        counts["principals"] = 0
        with _bar() as bar:
            for owner in self._owners(workspace, principal):
                counts["principals"] += 1
                counts.update(all_receipts.replay_all(owner, drifted=self._drifted, progress=bar.update))

    def _owners(self, workspace: str | None, principal: str | None) -> Iterator[UUID]:
        try:
            space = None if workspace is None else workspace_id(workspace)
            subject = None if principal is None else subjects.parse(principal)
        except (NotFound, InvalidRequest):
            raise CommandError("There is no such workspace or principal", returncode=2) from None
        return all_receipts.owners(workspace=space, subject=subject)

    def _drifted(self, receipt_id: UUID, fault: str) -> None:
        self.stderr.write(f"{receipt_id}: {fault}")

    def _files(self, paths: list[Path], counts: Counter[str]) -> None:
        counts["refused"] = 0
        for path in paths:
            try:
                self._count(path, counts)
            except (OSError, PrmeError) as error:
                reason = error.detail if isinstance(error, PrmeError) else "the file cannot be read"
                raise CommandError(f"{path.name}: {reason}", returncode=2) from None

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


@contextmanager
def _bar() -> Iterator["tqdm[Any]"]:
    with tqdm(unit="receipts", disable=None) as bar:
        yield bar
