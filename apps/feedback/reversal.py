"""What reversing a confirmation would do, edge by edge."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.core import canonical, clock
from apps.feedback.credits import edge_of
from apps.feedback.models import Credit, EdgeStrength
from apps.traces.decay import decay
from apps.traces.models import ActionReceipt
from apps.traces.policy import policy_in_effect


@dataclass(frozen=True, slots=True)
class EdgeReversal:
    """An edge of the confirmation as of now: its strength, what is taken, what is left; `active` as it stands."""

    edge_key: str
    active: bool
    strength: float
    removed: float
    after: float

    @property
    def edge(self) -> dict[str, str]:
        return edge_of(self.edge_key)


@dataclass(frozen=True, slots=True)
class ReversalPreview:
    """`state` is what the person sees of credits and edges, `version` its checksum: what an action is bound to."""

    receipt_id: UUID
    trace_id: UUID
    as_of: datetime
    edges: tuple[EdgeReversal, ...]
    state: list[Any]
    version: str


def preview_of(receipt: ActionReceipt) -> ReversalPreview:
    """The preview for a confirmation, in a session that reads its principal's rows."""
    now = clock.now()
    half_life_s = policy_in_effect(receipt.workspace_id).document.half_life_s
    credits = list(
        Credit.objects.filter(principal_id=receipt.principal_id, receipt_id=receipt.pk).order_by("edge_key")
    )
    keys = [credit.edge_key for credit in credits]
    stored = {
        row.edge_key: row
        for row in EdgeStrength.objects.filter(principal_id=receipt.principal_id, edge_key__in=keys)
    }
    edges = tuple(_reversal(credit, stored.get(credit.edge_key), now, half_life_s) for credit in credits)
    state = [[credit.edge_key, credit.active, *_stored(stored.get(credit.edge_key))] for credit in credits]
    return ReversalPreview(receipt.pk, receipt.trace_id, now, edges, state, canonical.checksum(state))


def _reversal(credit: Credit, row: EdgeStrength | None, now: datetime, half_life_s: float) -> EdgeReversal:
    if row is None:
        return EdgeReversal(credit.edge_key, credit.active, 0.0, 0.0, 0.0)
    at = max(now, row.updated_at)
    strength = decay(row.strength, row.updated_at, at, half_life_s)
    removed = decay(credit.delta, credit.credited_at, at, half_life_s) if credit.active else 0.0
    return EdgeReversal(credit.edge_key, credit.active, strength, removed, max(0.0, strength - removed))


def _stored(row: EdgeStrength | None) -> list[Any]:
    return [row.strength, clock.iso(row.updated_at)] if row else [0.0, None]
