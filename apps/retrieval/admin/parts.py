"""What both pages of receipts show alike beside their ranks: verdicts as facts, and names of nodes."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from django.utils.html import format_html

from apps.core import ui
from apps.graph.models import Passage
from apps.retrieval.verdicts import Check, Verdict

WORDS = {
    "checksum": ("checksum", "holds", "does not hold"),
    "document": ("document", "valid", "not valid"),
    "arrays": ("arrays", "agree", "do not agree"),
    "replay": ("replay", "equal", "not equal"),
}


def verdict_facts(verdict: Verdict) -> list[ui.Fact]:
    """One fact a check; in order it is plain text."""
    return [ui.Fact(WORDS[check.name][0], _said(check)) for check in verdict.checks]


def _said(check: Check) -> Any:
    if check.holds is None:
        return ui.nothing(check.says)
    if not check.holds:
        return ui.Mark("bad", WORDS[check.name][2], title=check.says)
    if check.name == "replay":
        return check.says.split(" scores equal")[0] + " equal"
    return WORDS[check.name][1]


def verdict_notices(verdict: Verdict) -> list[ui.Notice]:
    """What fails, in full; nothing where all holds."""
    return [ui.Notice("bad", check.says) for check in verdict.checks if check.holds is False]


def node_names(node_ids: Iterable[UUID]) -> Mapping[UUID, str]:
    """Where the nodes that are still there come from: `acme/app · wiki_doc keys/rotate.md`. One query."""
    rows = Passage.objects.filter(pk__in=list(node_ids)).values_list(
        "pk", "repo", "type", "path", "identity", "part"
    )
    return {pk: _name(*rest) for pk, *rest in rows}


def _name(repo: str, kind: str, path: str | None, identity: Any, part: int) -> str:
    shown = path or (f"#{identity}" if isinstance(identity, int) else str(identity))
    return f"{repo} · {kind} {shown}" + (f" part {part + 1}" if part else "")


def named(node_id: UUID, names: Mapping[UUID, str]) -> Any:
    """The name of a node, or its id where it is gone."""
    name = names.get(node_id)
    if name is not None:
        return name
    return format_html("node {}", ui.short_id(node_id, "node id"))
