"""What staff do for a principal, by its own services: reverse an outcome, judge what a receipt returned.

A reversal is bound to the credits that the person saw. A judgment is the person's own: it stands beside those of
the principal and of other annotators, never in their place.
"""

from typing import Any
from uuid import UUID, uuid4

from django.contrib.auth import get_user_model

from apps.core import audit
from apps.core.db.locks import lock_principal
from apps.core.db.sessions import GrantMissing, act_for, current_staff
from apps.core.problems import Forbidden
from apps.core.reasons import check_reason
from apps.feedback.exceptions import StalePreview, UnknownAblation, UnknownConfirmation
from apps.feedback.models import Ablation, Judgment
from apps.feedback.reversal import ReversalPreview, preview_of
from apps.feedback.schemas import JudgmentRequest
from apps.feedback.selectors.ablations import counterfactual
from apps.feedback.services.judgments import record_judgment
from apps.feedback.services.outcomes import Outcome, record_outcome
from apps.retrieval.exceptions import UnknownReceipt
from apps.retrieval.models import Receipt
from apps.retrieval.selectors import stored_receipt
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


def judge_receipt(*, receipt_id: UUID, submission: JudgmentRequest, reason: str = "") -> dict[str, Any]:
    """Record a judgment as staff with `curate`, under the user's own name, in one transaction with its audit entry.

    The same submission again gives the first record and no second entry. `reason` is the audit's. Raises
    UnknownReceipt, Forbidden, InvalidRequest for a reason that may not be kept, and what `record_judgment` raises.
    """
    check_reason(reason, required=False)
    user = current_staff().user_id
    owner = Receipt.objects.filter(pk=receipt_id).values_list("principal_id", flat=True).first()
    if owner is None:
        raise UnknownReceipt
    name = get_user_model().objects.get(pk=user).get_username()
    try:
        with act_for(owner, "curate"):
            lock_principal(owner)
            known = Judgment.objects.filter(principal_id=owner, feedback_id=submission.feedback_id).exists()
            answer = record_judgment(receipt_id=receipt_id, submission=submission, annotator=name)
            if not known:
                audit.record(
                    "feedback.judge",
                    "retrieval.receipt",
                    receipt_id,
                    reason=reason,
                    after=answer,
                    details={
                        "feedback_id": answer["feedback_id"],
                        "kind": answer["kind"],
                        "nodes": len(answer["node_ids"]),
                    },
                )
    except GrantMissing:
        raise Forbidden from None
    return answer


def reveal_counterfactual(*, ablation_id: UUID, reason: str) -> str:
    """What an ablation leaves of its context, from the present texts, for whoever holds `reveal_text`; audited.

    Raises UnknownAblation, Forbidden, ContextChanged, or InvalidRequest for a reason that is missing or may not be
    kept. A text that cannot be shown is no reveal and leaves no entry.
    """
    check_reason(reason)
    current_staff()
    seen = Ablation.objects.filter(pk=ablation_id).first()
    if seen is None:
        raise UnknownAblation
    try:
        with act_for(seen.principal_id, "reveal_text"):
            receipt = stored_receipt(seen.receipt_id).receipt
            text = counterfactual(receipt, seen.node_ids).text
            audit.record("feedback.reveal_context", "feedback.ablation", ablation_id, reason=reason)
    except GrantMissing:
        raise Forbidden from None
    return text
