"""Citations as the API shows them, and the three states of a receipt: none reported, reported none, n cited."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from apps.core import clock
from apps.core.db.sessions import current_principal
from apps.core.pages import KeysetPage
from apps.feedback.models import CitationSet
from apps.retrieval.selectors import check_receipt_exists
from apps.traces.schemas import PageRequest


@dataclass(frozen=True, slots=True)
class CitationsState:
    """What the answers made of a receipt's context cited, over all records."""

    sets: int
    node_ids: tuple[UUID, ...]

    @property
    def state(self) -> Literal["none_reported", "reported_none", "cited"]:
        if self.node_ids:
            return "cited"
        return "reported_none" if self.sets else "none_reported"

    def shown(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "sets": self.sets,
            "cited_node_ids": [str(node) for node in self.node_ids],
        }


def citations_state(receipt_id: UUID | None) -> CitationsState:
    """Of one receipt, as the session sees it; each node once, in the order in which it was first cited."""
    sets: Sequence[list[UUID]] = (
        list(
            CitationSet.objects.filter(receipt_id=receipt_id)
            .order_by("admitted_at", "id")
            .values_list("node_ids", flat=True)
        )
        if receipt_id
        else []
    )
    return CitationsState(len(sets), tuple(dict.fromkeys(node for nodes in sets for node in nodes)))


def shown_citations(record: CitationSet) -> dict[str, Any]:
    """A record as it was admitted."""
    return {
        "citation_id": str(record.citation_id),
        "receipt_id": str(record.receipt_id),
        "receipt_checksum": record.receipt_checksum,
        "context_sha256": record.context_sha256,
        "timestamp": clock.iso(record.admitted_at),
        "answer_id": record.answer_id,
        "answer_sha256": record.answer_sha256,
        "method": record.method,
        "cited_node_ids": [str(node) for node in record.node_ids],
    }


def citations_page(query: PageRequest, *, receipt_id: UUID) -> dict[str, Any]:
    """A page of the citation sets of a receipt by admission, newest first. Raises UnknownReceipt."""
    owner = current_principal().principal_id
    check_receipt_exists(receipt_id)
    page = KeysetPage.of(
        CitationSet.objects.filter(principal_id=owner, receipt_id=receipt_id),
        limit=query.limit,
        cursor=query.cursor,
        owner=owner,
        listing=f"receipts/{receipt_id}/citations",
        order=("-admitted_at", "-id"),
    )
    return {
        "citations": [shown_citations(record) for record in page.items],
        "state": citations_state(receipt_id).shown(),
        "next_cursor": page.next_cursor,
    }
