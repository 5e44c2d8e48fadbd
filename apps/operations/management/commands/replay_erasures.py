"""After a restore: erases again what the erasure file names and the restored data brought back."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.operations.erasure.lines import DamagedLine
from apps.operations.erasure.restore import NoReplay, missing, replay_file


class Command(BaseCommand):
    help = (
        "Replay the erasure file, oldest line first, before any process starts after a restore. Each erasure gets "
        "its certificate back under its own id. A damaged line fails before anything runs."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--file", type=Path, help="Another file than ERASURE_FILE.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            done = replay_file(options["file"])
            left = missing(options["file"])
        except (DamagedLine, NoReplay, OSError) as failure:
            raise CommandError(f"Nothing was replayed: {type(failure).__name__} {failure}") from None
        self.stdout.write(f"{len(done)} erasures ran again")
        if left:
            raise CommandError(f"{len(left)} certificates are not complete: run this again")
