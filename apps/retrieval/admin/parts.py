"""What both pages of receipts show alike: verdicts as facts, rows with what made each score, names of nodes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a score after the formula: what it is, and the score before and after it."""

    kind: str
    coefficient: float
    before: float
    after: float
    source: str | None = None


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


def score_bar(contributions: Sequence[tuple[str, float]], steps: Sequence[Step], scale: float) -> ui.ScoreBar:
    return ui.ScoreBar(
        contributions, scale, [(step.kind.replace("_", " "), step.after - step.before) for step in steps]
    )


def made_of(
    columns: Sequence[ui.Column], contributions: Sequence[Sequence[Any]], steps: Sequence[Step], caption: str
) -> Any:
    """The tables behind a row: what the formula added up, and the steps after it in their order."""
    features = ui.Records(
        f"{caption}: what was added up",
        columns,
        [ui.Record(list(cells)) for cells in contributions],
        wide=True,
        show_caption=False,
    )
    if not steps:
        return features
    adjustments = ui.Records(
        f"{caption}: steps after it, in their order",
        [
            ui.Column("step", "main"),
            *(ui.Column(name, "num") for name in ("coefficient", "before", "after")),
            ui.Column("from node"),
        ],
        [
            ui.Record(
                [
                    step.kind.replace("_", " "),
                    ui.score(step.coefficient),
                    ui.score(step.before, 10),
                    ui.score(step.after, 10),
                    ui.short_id(step.source, "node id") if step.source else ui.nothing("its own"),
                ]
            )
            for step in steps
        ],
        wide=True,
    )
    return format_html("{}{}", features, adjustments)


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
