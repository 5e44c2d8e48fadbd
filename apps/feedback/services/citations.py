"""Recording what an answer cited. Citations feed no ranking."""

from typing import Any
from uuid import UUID

from apps.core import clock, idempotency
from apps.core.db.sessions import current_principal
from apps.feedback.exceptions import NoContent, NodeNotInReceipt, NotInContext
from apps.feedback.models import CitationSet
from apps.feedback.schemas import CitationsRequest
from apps.feedback.selectors.citations import shown_citations
from apps.retrieval.keeping import keep_receipts
from apps.retrieval.selectors import JudgeableReceipt, judgeable_receipt

TOOL = "feedback.citations"
KEEPER = "feedback.citationset"


def record_citations(*, receipt_id: UUID, submission: CitationsRequest) -> dict[str, Any]:
    """Admit the citations of an answer out of a receipt's context, and answer with the record.

    Each cited node is an entry of the context that carries content. The same submission under its `citation_id`
    gives the first record again. Raises IdempotencyConflict, UnknownReceipt, CorruptReceipt, NodeNotInReceipt,
    NotInContext (also where the receipt has no context) or NoContent; then nothing is written.
    """
    payload = {"receipt_id": str(receipt_id)} | submission.model_dump(mode="json", exclude={"citation_id"})

    def first(record_id: UUID) -> idempotency.Made[dict[str, Any]]:
        receipt = judgeable_receipt(receipt_id)
        admitted = _admit(record_id, receipt, submission)
        keep_receipts(receipt_ids=[receipt_id], kind=KEEPER, record_id=record_id)
        return idempotency.Made(shown_citations(admitted))

    def again(record_id: UUID) -> dict[str, Any]:
        return shown_citations(CitationSet.objects.get(pk=record_id))

    return idempotency.once(
        tool=TOOL, key=str(submission.citation_id), payload=payload, run=first, again=again
    ).answer


def _admit(record_id: UUID, receipt: JudgeableReceipt, submission: CitationsRequest) -> CitationSet:
    if receipt.context_sha256 is None:
        raise NotInContext("The receipt has no context that an answer could cite")
    cited = [UUID(node) for node in submission.cited_node_ids]
    for index, node in enumerate(cited):
        _check_cited(receipt, node, f"/cited_node_ids/{index}")
    owner = current_principal()
    return CitationSet.objects.create(
        id=record_id,
        workspace_id=owner.workspace_id,
        principal_id=owner.principal_id,
        citation_id=submission.citation_id,
        receipt_id=receipt.id,
        receipt_checksum=receipt.checksum,
        context_sha256=receipt.context_sha256,
        answer_id=submission.answer_id,
        answer_sha256=submission.answer_sha256,
        method=submission.method,
        node_ids=cited,
        admitted_at=clock.now(),
    )


def _check_cited(receipt: JudgeableReceipt, node: UUID, pointer: str) -> None:
    entry = receipt.entries.get(node)
    if entry is None:
        raise NodeNotInReceipt(pointer=pointer)
    if not entry.in_context:
        raise NotInContext(pointer=pointer)
    if not entry.has_content:
        raise NoContent(pointer=pointer)
