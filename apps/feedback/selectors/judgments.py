"""Judgments as the API shows them, and their lists."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.expressions import RawSQL

from apps.core import clock
from apps.core.db.sessions import current_principal
from apps.core.pages import KeysetPage
from apps.feedback.models import NO_GRADE, Judgment, JudgmentKind
from apps.feedback.schemas import JudgmentsQuery
from apps.feedback.selectors.labels import folded_labels
from apps.retrieval.selectors import check_receipt_exists

FILTERS = ("receipt", "node", "surface", "method", "annotator")


def shown_judgment(record: Judgment) -> dict[str, Any]:
    """A record as it was admitted; the same at any time, whatever corrected it since."""
    withdrawal = record.kind == JudgmentKind.WITHDRAWAL
    corrects = str(record.corrects) if record.corrects else None
    nodes = [str(node) for node in record.node_ids]
    return {
        "feedback_id": str(record.feedback_id),
        "receipt_id": str(record.receipt_id),
        "receipt_checksum": record.receipt_checksum,
        "timestamp": clock.iso(record.admitted_at),
        "kind": record.kind,
        "surface": record.surface,
        "method": record.method,
        "annotator": record.annotator,
        "node_ids": nodes,
        "labels": {} if withdrawal else dict(zip(nodes, record.relevant, strict=True)),
        "grade": {
            node: grade for node, grade in zip(nodes, record.grades, strict=False) if grade != NO_GRADE
        },
        "supersedes": None if withdrawal else corrects,
        "withdraws": corrects if withdrawal else None,
        "reason": record.reason,
    }


def judgments_page(query: JudgmentsQuery, *, receipt_id: UUID | None = None) -> dict[str, Any]:
    """A page of the caller's records by admission, newest first, with which of their labels are in force.

    `receipt_id` lists those of one receipt. Raises UnknownReceipt for one that the caller has not.
    """
    owner = current_principal().principal_id
    listing = "judgments"
    if receipt_id is not None:
        check_receipt_exists(receipt_id)
        listing = f"receipts/{receipt_id}/judgments"
    page = KeysetPage.of(
        _narrowed(Judgment.objects.filter(principal_id=owner), query, receipt_id),
        limit=query.limit,
        cursor=query.cursor,
        owner=owner,
        listing=listing,
        order=("-admitted_at", "-id"),
        filters=query.model_dump(mode="json", include=set(FILTERS)),
    )
    in_force = _in_force(page.items)
    return {
        "judgments": [
            shown_judgment(record) | {"in_force": in_force.get(record.feedback_id, [])}
            for record in page.items
        ],
        "next_cursor": page.next_cursor,
    }


def _narrowed(
    records: QuerySet[Judgment], query: JudgmentsQuery, receipt_id: UUID | None
) -> QuerySet[Judgment]:
    wanted = {
        "receipt_id": receipt_id or query.receipt,
        "surface": query.surface,
        "method": query.method,
        "annotator": query.annotator,
    }
    records = records.filter(**{name: value for name, value in wanted.items() if value is not None})
    if query.node is not None:
        records = records.filter(pk__in=RawSQL("SELECT feedback_judgments_of_node(%s)", [query.node]))
    return records


def _in_force(records: Sequence[Judgment]) -> dict[UUID, list[str]]:
    """By feedback id: the nodes whose labels are in force."""
    found: dict[UUID, list[str]] = {}
    if not records:
        return found
    labels = folded_labels(receipt_ids=list({record.receipt_id for record in records}))
    for record_id, node_id in zip(labels.record_ids, labels.node_ids, strict=True):
        found.setdefault(record_id, []).append(str(node_id))
    return found
