"""Recording relevance judgments: labels, and their correction by records that supersede or withdraw.

Nothing is changed, ever: a correction is a record too. One entry that does not hold refuses the whole record.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Max

from apps.core import clock, idempotency
from apps.core.db.sessions import acting_staff, current_principal
from apps.core.text import refused_by
from apps.feedback.exceptions import (
    NoContent,
    NodeNotInJudgment,
    NodeNotInReceipt,
    NotInContext,
    OtherAnnotator,
    UnknownJudgment,
)
from apps.feedback.models import NO_GRADE, PRINCIPAL, Judgment, JudgmentKind, Surface
from apps.feedback.schemas import JudgmentRequest
from apps.feedback.selectors.judgments import shown_judgment
from apps.retrieval.keeping import keep_receipts
from apps.retrieval.selectors import JudgeableReceipt, judgeable_receipt

TOOL = "feedback.judgments"
KEEPER = "feedback.judgment"
TICK = timedelta(microseconds=1)


def record_judgment(
    *, receipt_id: UUID, submission: JudgmentRequest, annotator: str | None = None
) -> dict[str, Any]:
    """Admit a record about a receipt of the session's principal, and answer with it.

    `annotator` names who judged where it is not the principal itself: 1..150 characters, not `principal`; whoever
    acts for a principal must be named. The same submission under its `feedback_id` gives the first record again.

    Raises IdempotencyConflict, UnknownReceipt, CorruptReceipt, NodeNotInReceipt, NotInContext, NoContent,
    UnknownJudgment, NodeNotInJudgment or OtherAnnotator; then nothing is written.
    """
    who = _annotator(annotator)
    payload = {"receipt_id": str(receipt_id), "annotator": who} | submission.model_dump(
        mode="json", exclude={"feedback_id"}, exclude_none=True
    )

    def first(record_id: UUID) -> idempotency.Made[dict[str, Any]]:
        receipt = judgeable_receipt(receipt_id)
        admitted = _admit(record_id, receipt, submission, who)
        keep_receipts(receipt_ids=[receipt_id], kind=KEEPER, record_id=record_id)
        return idempotency.Made(shown_judgment(admitted))

    def again(record_id: UUID) -> dict[str, Any]:
        return shown_judgment(Judgment.objects.get(pk=record_id))

    return idempotency.once(
        tool=TOOL, key=str(submission.feedback_id), payload=payload, run=first, again=again
    ).answer


def _annotator(given: str | None) -> str:
    if given is None:
        if acting_staff():
            raise ValueError("who acts for a principal is an annotator of its own")
        return PRINCIPAL
    if given == PRINCIPAL or not 1 <= len(given) <= 150:
        raise ValueError("an annotator has a name of its own, of 1 to 150 characters")
    return given


def _admit(record_id: UUID, receipt: JudgeableReceipt, submission: JudgmentRequest, who: str) -> Judgment:
    owner = current_principal()
    said = (
        _withdrawal(receipt, submission, who) if submission.withdraws else _labels(receipt, submission, who)
    )
    keeps_reason = submission.reason is not None and refused_by(submission.reason) is None
    return Judgment.objects.create(
        id=record_id,
        workspace_id=owner.workspace_id,
        principal_id=owner.principal_id,
        feedback_id=submission.feedback_id,
        receipt_id=receipt.id,
        receipt_checksum=receipt.checksum,
        kind=said.kind,
        surface=said.surface,
        method=said.method,
        annotator=who,
        corrects=submission.supersedes or submission.withdraws,
        node_ids=list(said.node_ids),
        positions=[receipt.entries[node].position for node in said.node_ids],
        relevant=list(said.relevant),
        grades=list(said.grades),
        reason=submission.reason if keeps_reason else None,
        admitted_at=_admission(owner.principal_id, receipt.id),
    )


def _admission(owner: UUID, receipt_id: UUID) -> datetime:
    """Now, but after every other record of the receipt, whatever the clock did: the fold goes by this order."""
    last: datetime | None = Judgment.objects.filter(principal_id=owner, receipt_id=receipt_id).aggregate(
        last=Max("admitted_at")
    )["last"]
    now = clock.now()
    return now if last is None else max(now, last + TICK)


@dataclass(frozen=True, slots=True)
class _Said:
    """What a record says, ordered by the places of its nodes."""

    kind: JudgmentKind
    surface: str
    method: str
    node_ids: Sequence[UUID]
    relevant: Sequence[bool] = ()
    grades: Sequence[int] = ()


def _labels(receipt: JudgeableReceipt, submission: JudgmentRequest, who: str) -> _Said:
    assert submission.surface is not None
    assert submission.method is not None
    labels = {UUID(node): relevant for node, relevant in (submission.labels or {}).items()}
    grades = {UUID(node): grade for node, grade in (submission.grade or {}).items()}
    for node, relevant in labels.items():
        _check_label(receipt, node, relevant, submission.surface)
    if submission.supersedes:
        target = _target(receipt, submission.supersedes)
        if target.annotator != who or target.surface != submission.surface:
            raise OtherAnnotator(pointer="/supersedes")
    nodes = sorted(labels, key=lambda node: receipt.entries[node].position)
    return _Said(
        JudgmentKind.LABELS,
        submission.surface,
        submission.method,
        nodes,
        [labels[node] for node in nodes],
        [grades.get(node, NO_GRADE) for node in nodes],
    )


def _check_label(receipt: JudgeableReceipt, node: UUID, relevant: bool, surface: str) -> None:
    pointer = f"/labels/{node}"
    entry = receipt.entries.get(node)
    if entry is None:
        raise NodeNotInReceipt(pointer=pointer)
    if surface == Surface.CONTEXT:
        if not entry.in_context:
            raise NotInContext(pointer=pointer)
        if relevant and not entry.has_content:
            raise NoContent(pointer=pointer)


def _withdrawal(receipt: JudgeableReceipt, submission: JudgmentRequest, who: str) -> _Said:
    assert submission.withdraws is not None
    target = _target(receipt, submission.withdraws)
    # The owner of the data may take back what others said of it; nobody else takes back what is not theirs.
    if who not in (target.annotator, PRINCIPAL):
        raise OtherAnnotator(pointer="/withdraws")
    if submission.surface not in (None, target.surface):
        raise UnknownJudgment("That record judges the other surface", pointer="/surface")
    wanted = set(target.node_ids) if submission.node_ids is None else set(map(UUID, submission.node_ids))
    if wanted - set(target.node_ids):
        raise NodeNotInJudgment(pointer="/node_ids")
    return _Said(
        JudgmentKind.WITHDRAWAL,
        target.surface,
        submission.method or target.method,
        [node for node in target.node_ids if node in wanted],
    )


def _target(receipt: JudgeableReceipt, feedback_id: UUID) -> Judgment:
    """The labels that a correction names, on the same receipt."""
    found = Judgment.objects.filter(
        principal_id=current_principal().principal_id,
        feedback_id=feedback_id,
        receipt_id=receipt.id,
        kind=JudgmentKind.LABELS,
    ).first()
    if found is None:
        raise UnknownJudgment
    return found
