"""Reversal of an outcome by staff: the principal's own service, bound to the credits that the person saw."""

from typing import Any
from uuid import UUID, uuid4

from apps.core import audit
from apps.core.db.locks import lock_principal
from apps.core.db.sessions import GrantMissing, act_for, current_staff
from apps.core.problems import Forbidden
from apps.core.reasons import check_reason
from apps.feedback.exceptions import StalePreview, UnknownConfirmation
from apps.feedback.reversal import ReversalPreview, preview_of
from apps.feedback.services.outcomes import Outcome, record_outcome
from apps.traces.locks import share_policy
from apps.traces.models import ActionReceipt, ReceiptKind

REVERSALS = (ReceiptKind.CORRECTED, ReceiptKind.ROLLED_BACK)


def confirmation_seen(receipt_id: UUID) -> ActionReceipt:
    """A confirmation that the staff session sees. Raises UnknownConfirmation."""
    current_staff()
    found = ActionReceipt.objects.defer("reason").filter(pk=receipt_id, kind=ReceiptKind.CONFIRMED).first()
    if found is None:
        raise UnknownConfirmation
    return found


def preview_reversal(*, receipt_id: UUID) -> ReversalPreview:
    """What a reversal would do now: by edge the strength, what is removed, what stays. Nothing is written.

    Raises UnknownConfirmation, or Forbidden without `curate`.
    """
    receipt = confirmation_seen(receipt_id)
    try:
        with act_for(receipt.principal_id, "curate"):
            return preview_of(receipt)
    except GrantMissing:
        raise Forbidden from None


def reverse_outcome(*, receipt_id: UUID, kind: ReceiptKind, reason: str, version: str) -> dict[str, Any]:
    """Reverse a confirmation as staff with `curate`, in one transaction with its audit entry.

    `version` is that of the preview. Raises UnknownConfirmation, Forbidden, StalePreview, InvalidRequest for a
    reason that is missing or may not be kept.
    """
    if kind not in REVERSALS:
        raise ValueError("a reversal is corrected or rolled_back")
    check_reason(reason)
    receipt = confirmation_seen(receipt_id)
    try:
        with act_for(receipt.principal_id, "curate"):
            share_policy()
            lock_principal(receipt.principal_id)
            seen = preview_of(receipt)
            if seen.version != version:
                raise StalePreview(version=seen.version)
            outcome = Outcome(kind, reason, confirmation_id=str(receipt.pk))
            answer = record_outcome(
                trace_id=receipt.trace_id, idempotency_key=f"staff:{uuid4()}", outcome=outcome
            )
            audit.record(
                "feedback.reverse_outcome",
                "traces.actionreceipt",
                receipt.pk,
                reason=reason,
                before=seen.state,
                after=preview_of(receipt).state,
                details={"kind": str(kind), "edges": len(seen.edges), "reversal": answer["receipt_id"]},
            )
    except GrantMissing:
        raise Forbidden from None
    return answer
