"""A search from the command line, with a table for people; recorded like any other."""

from argparse import ArgumentParser
from typing import IO, Any, cast

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from apps.accounts.services import enter_principal, workspace_id
from apps.core.problems import NotFound, Problem
from apps.search.schemas import SearchRequest
from apps.search.services import search
from apps.traces.schemas import parse_call

EXCERPT = 160
"""Characters of a text that a row shows."""


class Command(BaseCommand):
    help = "Searches the memory of a principal and prints a table. Without a query it lists what is new."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("query", nargs="?", default="")
        parser.add_argument("--workspace", required=True, help="Slug.")
        parser.add_argument(
            "--principal", required=True, help="Subject; a bare name is token:NAME; shared is the shared one."
        )
        parser.add_argument("--limit", type=int, default=10)
        parser.add_argument("--scope", action="append", help="May be given more than once; all by default.")
        parser.add_argument(
            "--context",
            type=int,
            metavar="TOKENS",
            help="Also print the rows as one text within this budget.",
        )
        parser.add_argument("--graph", action="store_true", help="Also walk the mentions of ranked pages.")

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["principal"]
        subject = name if name == "shared" or ":" in name else f"token:{name}"
        given = {
            "query": options["query"],
            "limit": options["limit"],
            "scopes": options["scope"],
            "graph_expand": options["graph"],
        }
        if options["context"] is not None:
            given |= {"include_context": True, "token_budget": options["context"]}
        try:
            caller = enter_principal(workspace=workspace_id(options["workspace"]), subject=subject)
            request = parse_call(SearchRequest, given, nullable=("scopes",))
            document = search(caller=caller, request=request).document
        except NotFound as missing:
            raise CommandError(f"{missing.shown_code}: no such workspace or principal") from None
        except Problem as problem:
            raise CommandError(f"{problem.shown_code} {problem.pointer or ''} {problem.detail}") from None
        self._print(document)

    def _print(self, document: dict[str, Any]) -> None:
        console = Console(file=cast("IO[str]", self.stdout), highlight=False)
        console.print(_results(document))
        if document.get("graph_results"):
            console.print(_graph(document))
        if document.get("why_empty"):
            console.print(f"Nothing found: {document['why_empty']}")
        if "context" in document:
            context = document["context"]
            console.print(f"Context: {context['used_tokens']} of {context['token_budget']} tokens")
            console.print(Text(context["text"]), soft_wrap=True, end="")
        trace = document.get("trace_id")
        console.print(f"Trace {trace}" if trace else f"Not recorded: {document['memory_error']}")


def _results(document: dict[str, Any]) -> Table:
    table = Table(title=f"{document['mode']}: {len(document['results'])} rows", title_justify="left")
    for heading, right in (("#", True), ("score", True), ("type", False), ("source", False), ("text", False)):
        table.add_column(heading, justify="right" if right else "left", no_wrap=heading in {"#", "score"})
    for row in document["results"]:
        score = row.get("score")
        table.add_row(
            str(row["rank"]),
            f"{score:.4f}" if score is not None else "",
            row.get("type") or row["kind"],
            _where(row),
            _excerpt(row),
        )
    return table


def _where(row: dict[str, Any]) -> Text:
    provenance = row.get("provenance")
    if provenance is None:
        return Text(row.get("path") or row["node_id"])
    return Text(f"{provenance['repo']} {provenance['identity']}")


def _excerpt(row: dict[str, Any]) -> Text:
    text = " ".join(f"{row['title']} {row['content']}".split())
    return Text(text if len(text) <= EXCERPT else text[: EXCERPT - 1] + "…")


def _graph(document: dict[str, Any]) -> Table:
    table = Table(title="Mentioned by what was found", title_justify="left")
    for heading in ("hop", "page", "path"):
        table.add_column(heading)
    for row in document["graph_results"]:
        steps = " · ".join(f"{edge['src']} → {edge['dst']}" for edge in row["graph_path"])
        table.add_row(str(row["hop"]), Text(row["slug"]), Text(steps))
    return table
