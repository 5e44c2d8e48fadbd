"""Outcomes: a confirmation lends strength to the edges of verified paths, a reversal takes exactly that back.

Nothing else is credited: no shortcut from origin to end, no lexical or zero-hop edge. A reversal touches neither
stage nor activation, gives back no headroom to others, and cannot itself be reversed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.core import clock
from apps.core.db.sessions import current_principal
from apps.feedback.credits import credit_edges, reverse_credits
from apps.feedback.exceptions import (
    ConfirmationIdRequired,
    SourceIdsRequired,
    UnknownConfirmation,
    UsedSourceRequired,
)
from apps.traces.exceptions import UnknownSource, UnknownTrace
from apps.traces.keys import once_per_trace
from apps.traces.models import USED, ActionReceipt, ReceiptKind, Trace
from apps.traces.policy import policy_in_effect
from apps.traces.receipts import NewReceipt, head
from apps.traces.selectors import SavedSource, saved_sources
from apps.traces.services.uses import load_stages

TOOL = "feedback.outcomes"
NO_GRAPH_PATH = "no_graph_path"
NO_ACTIVE_CREDITS = "no_active_credits"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is said of a trace: `confirmed` of sources, or the reversal of a confirmation."""

    kind: ReceiptKind
    reason: str
    source_ids: tuple[str, ...] | None = None
    confirmation_id: str | None = None

    def payload(self, trace_id: UUID) -> dict[str, Any]:
        """Canonical arguments for the idempotency key; an absent member is absent."""
        members: dict[str, Any] = {
            "trace_id": str(trace_id),
            "outcome": str(self.kind),
            "reason": self.reason,
            "source_ids": list(self.source_ids) if self.source_ids is not None else None,
            "confirmation_id": self.confirmation_id,
        }
        return {name: value for name, value in members.items() if value is not None}


def record_outcome(*, trace_id: UUID, idempotency_key: str, outcome: Outcome) -> dict[str, Any]:
    """Record an outcome with its credits and answer with the action receipt; in the principal's session.

    The same key and payload give the same receipt again. Raises IdempotencyConflict, UnknownTrace,
    SourceIdsRequired, ConfirmationIdRequired, UnknownSource, UsedSourceRequired or UnknownConfirmation; then
    nothing is changed.
    """
    act = _confirm if outcome.kind == ReceiptKind.CONFIRMED else _reverse
    return once_per_trace(
        tool=TOOL,
        key=idempotency_key,
        payload=outcome.payload(trace_id),
        run=lambda receipt_id: act(trace_id, outcome, receipt_id),
    )


def _confirm(trace_id: UUID, outcome: Outcome, receipt_id: UUID) -> NewReceipt:
    names = list(dict.fromkeys(outcome.source_ids or ()))
    expires_at, stages = load_stages(trace_id, names)
    if outcome.source_ids is None or outcome.confirmation_id is not None:
        raise SourceIdsRequired
    for name in names:
        if name not in stages:
            raise UnknownSource
        if stages[name][0] < USED:
            raise UsedSourceRequired
    policy = policy_in_effect(current_principal().workspace_id)
    now = clock.now()
    sources = saved_sources(trace_id, names)
    edges = {edge.key: edge for source in sources for path in source.paths for edge in path}
    changes = credit_edges(edges, trace_id=trace_id, receipt_id=receipt_id, now=now, policy=policy.document)
    non_applied = None if edges else NO_GRAPH_PATH
    return NewReceipt(
        id=receipt_id,
        trace_id=trace_id,
        kind=ReceiptKind.CONFIRMED,
        recorded_at=now,
        body=head(receipt_id=receipt_id, trace_id=trace_id, at=now)
        | {
            "outcome": "confirmed",
            "confirmation_id": None,
            "non_applied_reason": non_applied,
            "saved_sources": [_shown(source) for source in _in_order(sources, names)],
            "changes": changes,
        },
        policy_id=policy.id,
        expires_at=expires_at,
        reason=outcome.reason,
        non_applied_reason=non_applied,
    )


def _in_order(sources: Sequence[SavedSource], names: Sequence[str]) -> list[SavedSource]:
    by_id = {source.source_id: source for source in sources}
    return [by_id[name] for name in names]


def _shown(source: SavedSource) -> dict[str, Any]:
    return {
        "source_id": source.source_id,
        "provenance": source.provenance,
        "axes": source.axes,
        "paths": [[edge.shown() for edge in path] for path in source.paths],
    }


def _reverse(trace_id: UUID, outcome: Outcome, receipt_id: UUID) -> NewReceipt:
    expires_at = Trace.objects.filter(pk=trace_id).values_list("expires_at", flat=True).first()
    if expires_at is None:
        raise UnknownTrace
    if outcome.confirmation_id is None or outcome.source_ids is not None:
        raise ConfirmationIdRequired
    confirmation = find_confirmation(trace_id, outcome.confirmation_id)
    policy = policy_in_effect(current_principal().workspace_id)
    now = clock.now()
    changes = reverse_credits(confirmation.id, by=receipt_id, now=now, policy=policy.document)
    non_applied = None if changes else NO_ACTIVE_CREDITS
    return NewReceipt(
        id=receipt_id,
        trace_id=trace_id,
        kind=outcome.kind,
        recorded_at=now,
        body=head(receipt_id=receipt_id, trace_id=trace_id, at=now)
        | {
            "outcome": str(outcome.kind),
            "confirmation_id": str(confirmation.id),
            "non_applied_reason": non_applied,
            "saved_sources": [],
            "changes": changes,
        },
        policy_id=policy.id,
        expires_at=expires_at,
        reason=outcome.reason,
        confirmation_id=confirmation.id,
        non_applied_reason=non_applied,
    )


def find_confirmation(trace_id: UUID, confirmation_id: str) -> ActionReceipt:
    """The confirmation of that trace. Raises UnknownConfirmation for anything else, a malformed id too."""
    try:
        wanted = UUID(confirmation_id)
    except ValueError:
        raise UnknownConfirmation from None
    found = ActionReceipt.objects.filter(pk=wanted, trace_id=trace_id, kind=ReceiptKind.CONFIRMED).first()
    if found is None:
        raise UnknownConfirmation
    return found
