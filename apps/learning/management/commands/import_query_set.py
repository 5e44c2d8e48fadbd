"""Makes a query set of a principal from a collection in the BEIR layout."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.accounts import subjects
from apps.accounts.services import enter_principal, workspace_id
from apps.core.db.sessions import entering_session
from apps.core.problems import NotFound, Problem
from apps.learning.beir import Layout, QrelsError, read_query_set
from apps.learning.services.query_sets import make_query_set

METADATA = "metadata."


def metadata_name(text: str) -> str:
    """`metadata.KEY` → KEY."""
    if not text.startswith(METADATA) or text == METADATA:
        raise ValueError(text)
    return text.removeprefix(METADATA)


class Command(BaseCommand):
    help = (
        "Makes a query set from DIR/queries.jsonl and DIR/qrels/SPLIT.tsv, whose documents were imported as "
        "collection C. Prints its id. A set never changes; importing again makes another one. Exit 2: bad input."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dir", type=Path)
        parser.add_argument("--workspace", required=True, help="Slug.")
        parser.add_argument("--principal", required=True, help="Subject; a bare name is token:NAME.")
        parser.add_argument(
            "--collection", required=True, help="Name under which the documents were imported."
        )
        parser.add_argument("--split", default="test", help="Of the judgments.")
        parser.add_argument("--name", help="Of the set; the folder's by default.")
        parser.add_argument("--group-by", type=metadata_name, help="metadata.KEY: the group of a query.")
        parser.add_argument("--slice-by", type=metadata_name, help="metadata.KEY: the slice of a query.")

    def handle(self, *args: Any, **options: Any) -> None:
        folder: Path = options["dir"]
        layout = Layout(
            repo=f"conn:{options['collection']}",
            split=options["split"],
            group_by=options["group_by"],
            slice_by=options["slice_by"],
        )
        try:
            request = read_query_set(folder, layout, name=options["name"] or folder.resolve().name)
        except QrelsError as error:
            raise CommandError(str(error), returncode=2) from None
        except OSError:
            absent = f"{folder} holds no queries.jsonl and qrels/{layout.split}.tsv"
            raise CommandError(absent, returncode=2) from None
        name = options["principal"]
        try:
            workspace = workspace_id(options["workspace"])
            # One transaction: a set that is refused enters nobody.
            with entering_session(lambda: enter_principal(workspace=workspace, subject=subjects.parse(name))):
                made = make_query_set(
                    name=request.name,
                    queries=request.queries,
                    judgments=request.judgments,
                    source="files",
                )
        except NotFound:
            raise CommandError("There is no such workspace or principal", returncode=2) from None
        except Problem as problem:
            refused = f"{problem.shown_code} {problem.pointer or ''} {problem.detail}"
            raise CommandError(refused, returncode=2) from None
        self.stdout.write(
            f"{made.pk}: {made.num_queries} queries, {made.num_judgments} judgments, {made.content_sha256}"
        )
