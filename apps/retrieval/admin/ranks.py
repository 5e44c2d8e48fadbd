"""Rows of a receipt by rank, native and imported alike: what made each score, and the steps after it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui

ABSENT = "not returned by this channel"


class Share(NamedTuple):
    """What one feature or channel added to a score: its value, or its rank on the channel, and its weight."""

    name: str
    value: float | int | None
    weight: float
    added: float


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a score after the formula: what it is, and the score before and after it."""

    kind: str
    coefficient: float
    before: float
    after: float
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Ranked:
    """A row: its score as recorded and (None: not replayed) as replayed, what made it, and the last cell.

    `shares` is None where the receipt does not record them; `facts` are what else its expansion says.
    """

    name: Any
    score: float
    replayed: float | None
    shares: Sequence[Share] | None
    steps: Sequence[Step]
    facts: Sequence[ui.Fact]
    last: Any

    @property
    def widest(self) -> float:
        """The sum before factors took from it, or the score where steps added more: bars of all rows fit in it."""
        return max(self.score, sum(share.added for share in self.shares or ()))


def rank_table(
    rows: Sequence[Ranked], *, last: str, numeric: bool = False, by_rank: bool = False
) -> ui.Records:
    """Ranks read together. `last` names the last column; `by_rank`: the formula adds ranks of channels up."""
    scale = max((row.widest for row in rows), default=0.0)
    columns = [
        ui.Column("#", "num"),
        ui.Column("candidate", "main"),
        ui.Column("score", "num"),
        ui.Column("what made the score"),
        ui.Column(last, "num" if numeric else "", later=True),
    ]
    shown = [_record(rank, row, scale, by_rank=by_rank) for rank, row in enumerate(rows, 1)]
    empty = ui.EmptyState("Zero hit.", "Nothing was returned, and that was recorded.", level=3)
    return ui.Records("Candidates by rank", columns, shown, header=1, empty=empty)


def _record(rank: int, row: Ranked, scale: float, *, by_rank: bool) -> ui.Record:
    bar: Any = ui.nothing("not recorded before schema 2")
    if row.shares is not None:
        adjusted = [(step.kind.replace("_", " "), step.after - step.before) for step in row.steps]
        bar = ui.ScoreBar([(share.name, share.added) for share in row.shares], scale, adjusted)
    differs = row.replayed is not None and row.replayed != row.score
    return ui.Record(
        [rank, row.name, ui.score(row.score), bar, row.last],
        more=_more(rank, row, by_rank=by_rank),
        tone="bad" if differs else "",
    )


def _more(rank: int, row: Ranked, *, by_rank: bool) -> SafeString:
    """Scores to ten places, what the formula added up, and the steps after it in their order."""
    scores = [ui.Fact("score recorded", ui.score(row.score, 10))]
    if row.shares is None:
        return format_html("{}", ui.Facts([*scores, *row.facts]))
    scores.append(ui.Fact("replayed", ui.score(row.replayed, 10, absent="not replayed")))
    facts = ui.Facts([*scores, *row.facts])
    return format_html(
        "{}{}{}", facts, _shares(rank, row, by_rank=by_rank), _steps(rank, row) if row.steps else ""
    )


def _shares(rank: int, row: Ranked, *, by_rank: bool) -> ui.Records:
    columns = [
        ui.Column("channel" if by_rank else "feature", "main"),
        *(ui.Column(name, "num") for name in ("rank" if by_rank else "value", "weight", "added")),
    ]
    records = [
        ui.Record(
            [share.name, _value(share.value, by_rank), ui.score(share.weight), ui.score(share.added, 10)]
        )
        for share in row.shares or ()
    ]
    return ui.Records(f"Rank {rank}: what was added up", columns, records, wide=True, show_caption=False)


def _value(value: float | int | None, by_rank: bool) -> Any:
    if value is None:
        return ui.nothing(ABSENT)
    return value if by_rank else ui.score(value)


def _steps(rank: int, row: Ranked) -> ui.Records:
    columns = [
        ui.Column("step", "main"),
        *(ui.Column(name, "num") for name in ("coefficient", "before", "after")),
        ui.Column("from node"),
    ]
    records = [
        ui.Record(
            [
                step.kind.replace("_", " "),
                ui.score(step.coefficient),
                ui.score(step.before, 10),
                ui.score(step.after, 10),
                ui.short_id(step.source, "node id") if step.source else ui.nothing("its own"),
            ]
        )
        for step in row.steps
    ]
    return ui.Records(f"Rank {rank}: steps after it, in their order", columns, records, wide=True)
