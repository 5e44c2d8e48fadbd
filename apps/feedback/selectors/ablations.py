"""Ablations and assessments as the API shows them, and the text that an ablation leaves."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.core import clock
from apps.core.db.sessions import current_principal
from apps.core.pages import KeysetPage
from apps.feedback.exceptions import UnknownAblation
from apps.feedback.models import Ablation, PresenceAssessment, PresenceTier
from apps.retrieval.context import present_context
from apps.retrieval.packing import context_hash
from apps.retrieval.packing.installed import tokenizer
from apps.retrieval.receipts.schemas import ReceiptDocument
from apps.retrieval.selectors import check_receipt_exists
from apps.traces.schemas import PageRequest


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """A context without some entries, beside the whole: texts counted by one tokenizer."""

    text: str
    sha256: str
    tokens: int
    baseline_sha256: str
    baseline_tokens: int
    tokenizer: str


def counterfactual(receipt: ReceiptDocument, node_ids: Sequence[UUID]) -> Counterfactual:
    """The context of a receipt without these entries of it. Raises ContextChanged, Unavailable (no tokenizer)."""
    present, counting = present_context(receipt), tokenizer()
    text = present.without(node_ids)
    return Counterfactual(
        text=text,
        sha256=context_hash(text),
        tokens=counting.count(text),
        baseline_sha256=present.sha256,
        baseline_tokens=counting.count(present.text),
        tokenizer=counting.name,
    )


def ablation_of(ablation_id: UUID) -> Ablation:
    """An ablation of the caller. Raises UnknownAblation."""
    owner = current_principal().principal_id
    found = Ablation.objects.filter(principal_id=owner, pk=ablation_id).first()
    if found is None:
        raise UnknownAblation
    return found


def ablation_shown(record: Ablation) -> dict[str, Any]:
    """A record as it was admitted; it holds no text."""
    return {
        "ablation_id": str(record.pk),
        "receipt_id": str(record.receipt_id),
        "receipt_checksum": record.receipt_checksum,
        "timestamp": clock.iso(record.admitted_at),
        "baseline_sha256": record.baseline_sha256,
        "counterfactual_sha256": record.counterfactual_sha256,
        "removed": [
            {"node_id": str(node), "token_cost": cost}
            for node, cost in zip(record.node_ids, record.token_costs, strict=True)
        ],
        "tokenizer": record.tokenizer,
        "baseline_tokens": record.baseline_tokens,
        "counterfactual_tokens": record.counterfactual_tokens,
        "removed_tokens": record.baseline_tokens - record.counterfactual_tokens,
    }


def assessment_shown(record: PresenceAssessment) -> dict[str, Any]:
    """A record as it was admitted."""
    return {
        "assessment_id": str(record.pk),
        "ablation_id": str(record.ablation_id),
        "evaluation_id": record.evaluation_id,
        "citation_id": str(record.citation_id),
        "timestamp": clock.iso(record.admitted_at),
        "baseline_correct": record.baseline_correct,
        "counterfactual_correct": record.counterfactual_correct,
        "tier": record.tier,
        "weight": PresenceTier(record.tier).weight,
        "baseline_answer_sha256": record.baseline_answer_sha256,
        "counterfactual_answer_sha256": record.counterfactual_answer_sha256,
    }


def ablations_page(query: PageRequest, *, receipt_id: UUID) -> dict[str, Any]:
    """A page of the ablations of a receipt by admission, newest first. Raises UnknownReceipt."""
    owner = current_principal().principal_id
    check_receipt_exists(receipt_id)
    page = KeysetPage.of(
        Ablation.objects.filter(principal_id=owner, receipt_id=receipt_id),
        limit=query.limit,
        cursor=query.cursor,
        owner=owner,
        listing=f"receipts/{receipt_id}/ablations",
        order=("-admitted_at", "-id"),
    )
    return {"ablations": [ablation_shown(row) for row in page.items], "next_cursor": page.next_cursor}


def assessments_page(query: PageRequest, *, ablation_id: UUID) -> dict[str, Any]:
    """A page of the assessments of an ablation by admission, newest first. Raises UnknownAblation."""
    owner = current_principal().principal_id
    ablation = ablation_of(ablation_id)
    page = KeysetPage.of(
        PresenceAssessment.objects.filter(principal_id=owner, ablation_id=ablation.pk),
        limit=query.limit,
        cursor=query.cursor,
        owner=owner,
        listing=f"ablations/{ablation_id}/assessments",
        order=("-admitted_at", "-id"),
    )
    return {"assessments": [assessment_shown(row) for row in page.items], "next_cursor": page.next_cursor}
