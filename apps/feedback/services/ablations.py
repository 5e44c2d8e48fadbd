"""Taking entries out of a packed context, and judging what one of them was worth.

Neither changes a context, a label or a rank, and no text is kept.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from apps.core import clock
from apps.core.db.locks import lock_principal
from apps.core.db.sessions import current_principal
from apps.core.ids import uuid7
from apps.core.problems import StateConflict
from apps.feedback.exceptions import (
    NodeNotInReceipt,
    NotCited,
    NotInContext,
    SeveralTargets,
    UnknownCitation,
)
from apps.feedback.models import Ablation, CitationSet, PresenceAssessment, PresenceTier
from apps.feedback.schemas import AblationRequest, AssessmentRequest
from apps.feedback.selectors.ablations import (
    Counterfactual,
    ablation_of,
    ablation_shown,
    assessment_shown,
    counterfactual,
)
from apps.retrieval.exceptions import ContextChanged
from apps.retrieval.keeping import keep_receipts
from apps.retrieval.receipts.schemas import ReceiptDocument
from apps.retrieval.selectors import StoredReceipt, stored_receipt

KEEPER = "feedback.ablation"


def ablate(*, receipt_id: UUID, submission: AblationRequest) -> dict[str, Any]:
    """Take entries out of a receipt's context; the record, with the text that remains.

    The same entries of the same receipt are one record, whoever asks how often. Raises UnknownReceipt,
    CorruptReceipt, NodeNotInReceipt, NotInContext, or ContextChanged where the memory no longer gives the context;
    then nothing is written.
    """
    lock_principal(current_principal().principal_id)
    found = stored_receipt(receipt_id)
    targets = _in_context(found.receipt, [UUID(node) for node in submission.node_ids])
    without = counterfactual(found.receipt, targets)
    return ablation_shown(_admitted(found, targets, without)) | {"counterfactual": without.text}


def _in_context(receipt: ReceiptDocument, asked: Sequence[UUID]) -> list[UUID]:
    """The targets in the order of the context. Raises for the first that is not an entry of it."""
    candidates = {UUID(candidate.node_id): candidate for candidate in receipt.candidates}
    for index, node in enumerate(asked):
        candidate = candidates.get(node)
        if candidate is None:
            raise NodeNotInReceipt(pointer=f"/node_ids/{index}")
        if not candidate.in_context:
            raise NotInContext(pointer=f"/node_ids/{index}")
    order = receipt.packing.order if receipt.packing else ()
    stood = [UUID(receipt.candidates[place].node_id) for place in order]
    return [node for node in stood if node in set(asked)]


def _admitted(found: StoredReceipt, targets: list[UUID], without: Counterfactual) -> Ablation:
    owner = current_principal()
    known = Ablation.objects.filter(
        principal_id=owner.principal_id,
        receipt_id=found.id,
        node_ids=targets,
        tokenizer=without.tokenizer,
    ).first()
    if known is not None:
        return known
    costs = {UUID(each.node_id): each.token_cost or 0 for each in found.receipt.candidates}
    record = Ablation.objects.create(
        id=uuid7(),
        workspace_id=owner.workspace_id,
        principal_id=owner.principal_id,
        receipt_id=found.id,
        receipt_checksum=found.checksum,
        baseline_sha256=without.baseline_sha256,
        counterfactual_sha256=without.sha256,
        node_ids=targets,
        token_costs=[costs[node] for node in targets],
        tokenizer=without.tokenizer,
        baseline_tokens=without.baseline_tokens,
        counterfactual_tokens=without.tokens,
        admitted_at=clock.now(),
    )
    keep_receipts(receipt_ids=[found.id], kind=KEEPER, record_id=record.pk)
    return record


def assess(*, ablation_id: UUID, submission: AssessmentRequest) -> dict[str, Any]:
    """Record whether an answer was right with and without the one entry of an ablation; the record, with its tier.

    The same submission under its `evaluation_id` gives the first record again. Raises UnknownAblation,
    SeveralTargets, UnknownCitation, ContextChanged, NotCited, or StateConflict (`idempotency_conflict`).
    """
    owner = current_principal()
    lock_principal(owner.principal_id)
    ablation = ablation_of(ablation_id)
    given = submission.model_dump(exclude={"evaluation_id"})
    known = PresenceAssessment.objects.filter(
        principal_id=owner.principal_id, ablation_id=ablation.pk, evaluation_id=submission.evaluation_id
    ).first()
    if known is not None:
        if given != {name: getattr(known, name) for name in given}:
            raise StateConflict("This id was used for another assessment", code="idempotency_conflict")
        return assessment_shown(known)
    _check_cited(ablation, submission.citation_id)
    tier = PresenceTier.of(
        baseline_correct=submission.baseline_correct,
        counterfactual_correct=submission.counterfactual_correct,
    )
    record = PresenceAssessment.objects.create(
        id=uuid7(),
        workspace_id=owner.workspace_id,
        principal_id=owner.principal_id,
        ablation_id=ablation.pk,
        evaluation_id=submission.evaluation_id,
        tier=tier,
        admitted_at=clock.now(),
        **given,
    )
    return assessment_shown(record)


def _check_cited(ablation: Ablation, citation_id: UUID) -> None:
    """One target, which a citation of just that context names."""
    if len(ablation.node_ids) != 1:
        raise SeveralTargets
    cited = CitationSet.objects.filter(
        principal_id=current_principal().principal_id, citation_id=citation_id
    ).first()
    if cited is None:
        raise UnknownCitation(pointer="/citation_id")
    if cited.context_sha256 != ablation.baseline_sha256:
        raise ContextChanged("The citation set is of another context", pointer="/citation_id")
    if ablation.node_ids[0] not in cited.node_ids:
        raise NotCited(pointer="/citation_id")
