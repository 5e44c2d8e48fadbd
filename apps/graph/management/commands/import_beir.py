"""Imports a collection in the BEIR layout into the memory of a principal, or of one principal a metadata value."""

from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from apps.accounts.services import enter_principal, workspace_id
from apps.core.db.identity import PrincipalIdentity
from apps.core.problems import NotFound
from apps.graph.beir import CorpusError, Layout, read_corpus
from apps.graph.services import embed_missing, import_passages

METADATA = "metadata."


def metadata_name(text: str) -> str:
    """`metadata.KEY` → KEY."""
    if not text.startswith(METADATA) or text == METADATA:
        raise ValueError(text)
    return text.removeprefix(METADATA)


def subject(principal: str, owner: str | None) -> str:
    """The subject of a bare or prefixed principal name, and of the principal split off for a value."""
    whole = principal if owner is None else f"{principal}:{owner}"
    return whole if principal == "shared" or ":" in principal else f"token:{whole}"


class Command(BaseCommand):
    help = (
        "Imports DIR/corpus.jsonl, streaming. Idempotent: the same text makes no new row, a changed one replaces. "
        "Vectors follow in a background task, or at once with --embed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dir", type=Path)
        parser.add_argument("--workspace", required=True, help="Slug.")
        parser.add_argument(
            "--principal", required=True, help="Subject; a bare name is token:NAME; shared is the shared one."
        )
        parser.add_argument("--scope", default="default")
        parser.add_argument("--collection", help="Name of the source; the folder's name by default.")
        parser.add_argument(
            "--split-by", type=metadata_name, help="metadata.KEY: a principal for each value."
        )
        parser.add_argument(
            "--session-by", type=metadata_name, help="metadata.KEY: the session of a document."
        )
        parser.add_argument("--event-time", type=metadata_name, help="metadata.KEY: RFC 3339, with a zone.")
        parser.add_argument("--embed", action="store_true", help="Make the vectors now.")

    def handle(self, *args: Any, **options: Any) -> None:
        folder: Path = options["dir"]
        corpus = folder / "corpus.jsonl"
        if not corpus.is_file():
            raise CommandError(f"{folder} holds no corpus.jsonl")
        if options["principal"] == "shared" and options["split_by"]:
            raise CommandError("The shared principal cannot be split")
        layout = Layout(
            repo=f"conn:{options['collection'] or folder.resolve().name}",
            scope=options["scope"],
            split_by=options["split_by"],
            session_by=options["session_by"],
            event_time=options["event_time"],
        )
        try:
            workspace = workspace_id(options["workspace"])
        except NotFound as absent:
            raise CommandError("There is no such workspace") from absent
        counts, principals = self._import(corpus, layout, workspace, options["principal"])
        self.stdout.write(
            ", ".join(f"{number} {result}" for result, number in sorted(counts.items())) or "nothing"
        )
        if options["embed"]:
            self._embed(principals)

    def _import(
        self, corpus: Path, layout: Layout, workspace: UUID, principal: str
    ) -> tuple[Counter[str], dict[UUID, PrincipalIdentity]]:
        documents = (
            (document.owner, item) for document in read_corpus(corpus, layout) for item in document.parts
        )
        with tqdm(unit="passages", disable=None) as bar:
            try:
                return import_passages(
                    documents=documents,
                    principal_of=lambda owner: enter_principal(
                        workspace=workspace, subject=subject(principal, owner)
                    ),
                    progress=bar.update,
                )
            except CorpusError as error:
                raise CommandError(str(error)) from error

    def _embed(self, principals: dict[UUID, PrincipalIdentity]) -> None:
        ready = 0
        with tqdm(unit="vectors", disable=None) as bar:
            for identity in principals.values():
                more = True
                while more:
                    run = embed_missing(principal=identity)
                    if run.error:
                        raise CommandError(f"No vectors: {run.error}")
                    ready, more = ready + run.ready, run.more
                    bar.update(run.ready + run.empty)
        self.stdout.write(f"{ready} vectors")
