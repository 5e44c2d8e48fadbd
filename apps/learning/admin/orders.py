"""What a move of the pointer would do to recent answers, in names that staff may see."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from apps.core import ui
from apps.core.ui import Part
from apps.learning.admin.parts import Orders
from apps.learning.admin.words import linked_receipt
from apps.learning.selectors.preview import ActivationPreview, Reordered
from apps.retrieval.models import Receipt
from apps.traces.models import TraceSource
from apps.traces.pages import source_name
from apps.traces.selectors import provenance_of

MOST_ROWS = 10


@dataclass(frozen=True, slots=True)
class Row:
    """A row of an answer as it would stand: `by` places up (negative: down), 0 where it stays."""

    rank: int
    before: int
    name: Any

    @property
    def by(self) -> int:
        return self.before - self.rank

    @property
    def places(self) -> int:
        return abs(self.by)


@dataclass(frozen=True, slots=True)
class Answer:
    """One recent answer under the new order, its first rows."""

    at: datetime
    receipt: Any
    rows: tuple[Row, ...]
    moved: int
    total: int

    @property
    def moved_words(self) -> str:
        if not self.total:
            return "no row"
        return f"{self.moved} of {self.total} rows move" if self.moved else "nothing moves"

    @property
    def rest(self) -> str:
        left = self.total - len(self.rows)
        return f"and {left} more" if left else ""


def a_day(found: ActivationPreview) -> str:
    """`12 receipts a day of this scope set`, over the days that were counted."""
    rate = found.receipts / found.days
    shown = ui.count(round(rate)) if rate >= 10 else ui.score(rate, 1)
    return f"{shown} receipts a day of this scope set, over {found.days} days"


def orders_of(found: ActivationPreview) -> Part:
    """The newest answer of each of the scope set's last queries, in old and new order; says so where there is none."""
    if not found.orders:
        why = f"Nothing was searched in exactly this scope set in the last {found.days} days."
        return ui.EmptyState("No recent answer to show.", why, level=3)
    names = _names([order.receipt_id for order in found.orders])
    times = [datetime.fromisoformat(at) for at in found.times]
    return Orders([_answer(order, at, names) for order, at in zip(found.orders, times, strict=True)])


@dataclass(frozen=True)
class StateEffect(Part):
    """What one of several choices would do: how many rows move, and, while it is the one chosen, the orders."""

    found: ActivationPreview
    template_name: ClassVar[str] = "learning/parts/state_effect.html"

    @property
    def words(self) -> str:
        """`10 of 15 rows move in 5 recent queries`."""
        number, total = len(self.found.orders), sum(len(order.then) for order in self.found.orders)
        if not number:
            return "No recent answer to show."
        moved = sum(order.moved for order in self.found.orders)
        queries = f"{number} recent quer{'ies' if number > 1 else 'y'}"
        return f"{moved} of {total} rows move in {queries}" if moved else f"Nothing moves in {queries}."

    @property
    def orders(self) -> Any:
        return orders_of(self.found) if self.found.orders else ""


def _answer(order: Reordered, at: datetime, names: Mapping[UUID, str]) -> Answer:
    before = {node: rank for rank, node in enumerate(order.now, 1)}
    rows = tuple(
        Row(rank, before[node], names.get(node) or ui.short_id(node, "node id", copy=False))
        for rank, node in enumerate(order.then[:MOST_ROWS], 1)
    )
    return Answer(at, linked_receipt(order.receipt_id), rows, order.moved, len(order.then))


def _names(receipt_ids: Iterable[UUID]) -> dict[UUID, str]:
    """Nodes by the name of the source that their trace recorded, in two statements."""
    traces = Receipt.objects.filter(pk__in=list(receipt_ids)).values_list("trace_id", flat=True)
    found = TraceSource.objects.filter(trace_id__in=list(traces), node_id__isnull=False)
    return {source.node_id: source_name(provenance_of(source)) for source in found if source.node_id}
