"""Import receipts and label records that PRME exported into the database, as a principal's."""

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from apps.accounts import subjects
from apps.accounts.services import enter_principal, workspace_id
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session
from apps.core.problems import InvalidRequest, NotFound, StateConflict
from apps.retrieval.prme.exceptions import PrmeError
from apps.retrieval.prme.reading import read_lines
from apps.retrieval.services import Imported, ImportedReceipt, import_lines


class Command(BaseCommand):
    help = (
        "Imports each .jsonl or .jsonl.gz FILE, all of its lines or none: receipts of schema 1 to 22, raw or as "
        "PRME's store holds them, and label records. Every receipt is verified and, from schema 2 on, replayed; "
        "its bytes stay as they came. The same file again changes nothing. Exit 2: a file was refused; the "
        "message names its line, and the files after it were not begun; or no such workspace or principal."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
        parser.add_argument("--workspace", required=True, help="Slug.")
        parser.add_argument("--principal", required=True, help="Subject; a bare name is token:NAME.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            workspace = workspace_id(options["workspace"])
        except NotFound as absent:
            raise CommandError("There is no such workspace", returncode=2) from absent
        try:
            owner = enter_principal(workspace=workspace, subject=subjects.parse(options["principal"]))
        except (InvalidRequest, NotFound):
            raise CommandError("There can be no such principal, or it is disabled", returncode=2) from None
        for path in options["files"]:
            counts = self._import(path, owner)
            self.stdout.write(
                f"{path.name}: {counts.receipts} receipts and {counts.labels} label records stored, "
                f"{counts.known_receipts} and {counts.known_labels} known"
            )

    def _import(self, path: Path, owner: PrincipalIdentity) -> Imported:
        with tqdm(unit="lines", desc=path.name, disable=None) as bar:

            def told(num_lines: int, receipts: Sequence[ImportedReceipt]) -> None:
                bar.update(num_lines)

            try:
                with principal_session(owner):
                    return import_lines(lines=read_lines(path), told=told)
            except OSError:
                raise CommandError(f"{path.name}: the file cannot be read", returncode=2) from None
            except PrmeError as error:
                raise CommandError(f"{path.name}: {error.detail}", returncode=2) from None
            except (InvalidRequest, StateConflict) as refused:
                message = f"{path.name}: {refused.shown_code}: {refused.detail}"
                raise CommandError(message, returncode=2) from None
