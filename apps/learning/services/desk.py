"""What a person does at the labelling desk, in its staff session: open it, judge, take back."""

from typing import Any
from uuid import UUID

from apps.core import audit
from apps.core.db.sessions import GrantMissing, act_for
from apps.core.ids import uuid7
from apps.core.problems import Forbidden
from apps.core.reasons import check_reason
from apps.feedback.schemas import JudgmentRequest
from apps.feedback.services.staff import judge_receipt
from apps.learning.desk.queues import Queue

AUDIT_REASON = "labelling desk"


def open_desk(*, queue: Queue, reason: str) -> UUID:
    """Reveal the questions and passages of a queue to the user for one sitting; the audit entry's id.

    Raises InvalidRequest for a reason that is missing or may not be kept, Forbidden without `reveal_text`.
    """
    check_reason(reason)
    try:
        with act_for(queue.principal_id, "reveal_text"):
            return audit.record(
                "learning.open_desk",
                "accounts.principal",
                queue.principal_id,
                reason=reason,
                details={"queue": queue.name, "receipts": len(queue.receipts)},
            )
    except GrantMissing:
        raise Forbidden from None


def judge(
    *, receipt_id: UUID, node_id: UUID, feedback_id: UUID, relevant: bool, grade: int | None, note: str
) -> dict[str, Any]:
    """Record one label under the user's own name. The same `feedback_id` again changes nothing.

    Raises what `judge_receipt` raises, InvalidRequest (`/note`) for a note that may not be kept.
    """
    check_reason(note, pointer="/note", required=False)
    submission = JudgmentRequest(
        feedback_id=feedback_id,
        labels={str(node_id): relevant},
        surface="results",
        method="explicit_user",
        grade=None if grade is None else {str(node_id): grade},
        reason=note or None,
    )
    return judge_receipt(receipt_id=receipt_id, submission=submission, reason=AUDIT_REASON)


def take_back(*, receipt_id: UUID, feedback_id: UUID) -> dict[str, Any]:
    """Withdraw a label that the user gave. Raises what `judge_receipt` raises."""
    withdrawal = JudgmentRequest(feedback_id=uuid7(), withdraws=feedback_id)
    return judge_receipt(receipt_id=receipt_id, submission=withdrawal, reason=AUDIT_REASON)
