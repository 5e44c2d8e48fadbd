"""Reads of imported receipts, in the session of their principal. Each is verified whenever it is read."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from apps.core import clock
from apps.core.db.sessions import current_principal
from apps.core.pages import KeysetPage
from apps.retrieval.exceptions import CorruptReceipt, ReplayUnavailable, UnknownReceipt
from apps.retrieval.models import PrmeLabelRecord, PrmeReceipt
from apps.retrieval.prme import reading, replay
from apps.retrieval.prme.documents import Candidate, LabelRecord, ReceiptDocument
from apps.retrieval.prme.exceptions import PrmeError
from apps.retrieval.requests import ReceiptsQuery

LISTED = (
    "id",
    "request_id",
    "imported_at",
    "schema_version",
    "formula",
    "scopes",
    "query_identity",
    "candidate_count",
    "checksum",
)
CHUNK = 100
"""Documents in memory at once; one of 1,000 candidates has some 2 MB."""


@dataclass(frozen=True, slots=True)
class StoredPrmeReceipt:
    """An imported receipt as it was read: its bytes have their checksum, and it replays if its version can."""

    id: UUID
    imported_at: datetime
    receipt: reading.PrmeReceipt

    @property
    def request_id(self) -> str:
        return self.receipt.document.request_id

    @property
    def contract(self) -> str:
        return f"prme-{self.receipt.document.schema_version}"


def own_receipts() -> QuerySet[PrmeReceipt]:
    return PrmeReceipt.objects.filter(principal_id=current_principal().principal_id)


def prme_receipt(receipt_id: UUID) -> StoredPrmeReceipt:
    """An imported receipt of the caller that reproduces itself. Raises UnknownReceipt, CorruptReceipt."""
    row = own_receipts().filter(pk=receipt_id).first()
    if row is None:
        raise UnknownReceipt
    return StoredPrmeReceipt(row.pk, row.imported_at, read_row(row))


def read_row(row: PrmeReceipt) -> reading.PrmeReceipt:
    """What a row holds, verified and, from version 2 on, replayed. Raises CorruptReceipt."""
    try:
        receipt = reading.read_receipt(row.document.encode(), expected_checksum=row.checksum)
    except PrmeError as error:
        raise CorruptReceipt(str(error)) from None
    if receipt.document.request_id != str(row.request_id):
        raise CorruptReceipt("The row and its document do not agree")
    return receipt


def prme_receipts() -> Iterator[reading.PrmeReceipt]:
    """All imported receipts of the caller in the order of their request ids, a few in memory at a time.

    Raises CorruptReceipt.
    """
    after = UUID(int=0)
    rows = own_receipts().order_by("request_id")
    # The first page may hold the id of zeros, those after begin behind the last one.
    page = list(rows[:CHUNK])
    while page:
        for row in page:
            yield read_row(row)
        after = page[-1].request_id
        page = list(rows.filter(request_id__gt=after)[:CHUNK])


def prme_label_records() -> Iterator[LabelRecord]:
    """All imported label records of the caller, in the order of their feedback ids."""
    rows = PrmeLabelRecord.objects.filter(principal_id=current_principal().principal_id)
    for document in rows.order_by("feedback_id").values_list("document", flat=True):
        yield reading.read_label_record(document.encode())


def imported_page(query: ReceiptsQuery) -> dict[str, Any]:
    """A page of the caller's imported receipts, the last import first."""
    query.check_form()
    owner = current_principal().principal_id
    given = {
        "imported_at__gte": query.since,
        "imported_at__lt": query.until,
        "formula": query.formula,
        "scopes": sorted(set(query.scope)) or None,
        "query_identity": query.query_identity,
        "request_id": query.request_id,
    }
    rows = own_receipts().filter(**{name: value for name, value in given.items() if value is not None})
    page = KeysetPage.of(
        rows.only(*LISTED),
        limit=query.limit,
        cursor=query.cursor,
        owner=owner,
        listing="receipts",
        order=("-imported_at", "-id"),
        filters=query.filters,
    )
    return {"receipts": [_listed(row) for row in page.items], "next_cursor": page.next_cursor}


def _listed(row: PrmeReceipt) -> dict[str, Any]:
    return {
        "receipt_id": str(row.pk),
        "form": "prme",
        "request_id": str(row.request_id),
        "timestamp": clock.iso(row.imported_at),
        "mode": None,
        "query": {"trace_id": None, "identity": row.query_identity},
        "scopes": row.scopes,
        "policy_id": None,
        "formula": row.formula,
        "contract": f"prme-{row.schema_version}",
        "profile": {"id": None, "status": "none"},
        "candidates": row.candidate_count,
        "checksum": row.checksum,
    }


def prme_shown(found: StoredPrmeReceipt) -> dict[str, Any]:
    """The answer about one imported receipt; its text as it came."""
    return {
        "checksum": found.receipt.checksum,
        "document": found.receipt.raw.decode(),
        "form": "prme",
        "receipt_id": str(found.id),
        "request_id": found.request_id,
        "timestamp": clock.iso(found.imported_at),
    }


def prme_replay_shown(receipt_id: UUID) -> dict[str, Any]:
    """The verdict of a replay. Raises UnknownReceipt, CorruptReceipt, ReplayUnavailable (version 1)."""
    row = own_receipts().filter(pk=receipt_id).first()
    if row is None:
        raise UnknownReceipt
    document = _parsed(row)
    if row.schema_version == 1:
        raise ReplayUnavailable
    replayed = replay(document)
    recorded = [candidate.node_id for candidate in document.candidates]
    scores = [_score(candidate, replayed.scores[candidate.node_id]) for candidate in document.candidates]
    drifted = sum(score["recorded"] != score["replayed"] for score in scores)
    order_equal = list(replayed.order) == recorded
    return {
        "receipt_id": str(row.pk),
        "checksum": row.checksum,
        "contract": f"prme-{row.schema_version}",
        "verified": order_equal and not drifted,
        "candidates": len(scores),
        "scores": scores,
        "drifted": drifted,
        # The weights as applied are the receipt's own inputs: there are none to derive them from.
        "weights_equal": True,
        "order_equal": order_equal,
    }


def _parsed(row: PrmeReceipt) -> ReceiptDocument:
    raw = row.document.encode()
    if reading.checksum_of(raw) != row.checksum:
        raise CorruptReceipt("The bytes are not those that the checksum was taken over")
    try:
        return reading.parse_receipt(raw)
    except PrmeError as error:
        raise CorruptReceipt(str(error)) from None


def _score(candidate: Candidate, replayed: float) -> dict[str, Any]:
    return {"node_id": candidate.node_id, "recorded": candidate.score, "replayed": replayed}
