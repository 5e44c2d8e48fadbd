"""Reads of receipts, in the session of their principal. Each is verified whenever it is read."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F, QuerySet

from apps.core import clock
from apps.core.db.sessions import current_principal
from apps.core.pages import KeysetPage
from apps.retrieval.candidates import statistics
from apps.retrieval.candidates.filters import Restriction
from apps.retrieval.exceptions import CorruptReceipt, UnknownReceipt
from apps.retrieval.models import Receipt
from apps.retrieval.receipts import arrays, writing
from apps.retrieval.receipts.replay import Replay, read, replay
from apps.retrieval.receipts.schemas import ReceiptDocument
from apps.retrieval.requests import ReceiptsQuery

LISTED = (
    "id",
    "trace_id",
    "recorded_at",
    "mode",
    "contract",
    "formula",
    "policy_id",
    "scopes",
    "query_identity",
    "profile_id",
    "profile_status",
    "checksum",
)


@dataclass(frozen=True, slots=True)
class StoredReceipt:
    """A receipt as it was read: its bytes, and what they say. `document` is byte-equal to what was stored."""

    id: UUID
    trace_id: UUID | None
    recorded_at: datetime
    document: bytes
    checksum: str
    receipt: ReceiptDocument


def check_receipt_exists(receipt_id: UUID) -> None:
    """Raises UnknownReceipt where the caller has none of that id."""
    if not Receipt.objects.filter(principal_id=current_principal().principal_id, pk=receipt_id).exists():
        raise UnknownReceipt


def stored_receipt(receipt_id: UUID) -> StoredReceipt:
    """A receipt of the caller that reproduces itself. Raises UnknownReceipt, CorruptReceipt."""
    found = _read(receipt_id)
    if not replay(found.receipt).exact:
        raise CorruptReceipt("Its scores or its order do not follow from what it records")
    return found


def replay_of(receipt_id: UUID) -> tuple[StoredReceipt, Replay]:
    """A receipt and what its replay gives, exact or not. Raises UnknownReceipt, CorruptReceipt (bytes, schema)."""
    found = _read(receipt_id)
    return found, replay(found.receipt)


def _read(receipt_id: UUID) -> StoredReceipt:
    row = Receipt.objects.filter(principal_id=current_principal().principal_id, pk=receipt_id).first()
    if row is None:
        raise UnknownReceipt
    document = row.document.encode()
    receipt = read(document, row.checksum)
    if receipt.receipt_id != str(row.pk) or not _agree(row, receipt):
        raise CorruptReceipt("The row and its document do not agree")
    return StoredReceipt(row.pk, row.trace_id, row.recorded_at, document, row.checksum, receipt)


def _agree(row: Receipt, receipt: ReceiptDocument) -> bool:
    """Whether the arrays beside the document say what it says."""
    said = arrays.arrays_of(receipt.model_dump(include={"schema_version", "candidates", "weights"}))
    return all(getattr(row, name) == getattr(said, name) for name in said.__slots__)


@dataclass(frozen=True, slots=True)
class Entry:
    """A candidate of a receipt, as far as it can be judged or cited. `position` is its place, from 0."""

    position: int
    in_context: bool
    has_content: bool


@dataclass(frozen=True, slots=True)
class JudgeableReceipt:
    """A verified receipt, as judgments and citations bind to it."""

    id: UUID
    checksum: str
    context_sha256: str | None
    entries: dict[UUID, Entry]


def judgeable_receipt(receipt_id: UUID) -> JudgeableReceipt:
    """What of a receipt of the caller can be judged. Raises UnknownReceipt, CorruptReceipt."""
    found = stored_receipt(receipt_id)
    entries = {
        UUID(candidate.node_id): Entry(position, candidate.in_context, candidate.has_content)
        for position, candidate in enumerate(found.receipt.candidates)
    }
    return JudgeableReceipt(found.id, found.checksum, found.receipt.context_sha256, entries)


def corpus_digest() -> str:
    """Names the state of what the session's principal can find now; receipts record the same."""
    owner = current_principal()
    owners = [owner.principal_id, owner.shared_principal_id or owner.principal_id]
    visible = Restriction(tuple(dict.fromkeys(owners)), ())
    return statistics.read(visible, None).digest()


def receipts_page(query: ReceiptsQuery) -> dict[str, Any]:
    """A page of the caller's native receipts, newest first."""
    query.check_form()
    owner = current_principal().principal_id
    rows: QuerySet[Receipt] = Receipt.objects.filter(principal_id=owner, **_narrowed(query))
    page = KeysetPage.of(
        rows.only(*LISTED).annotate(num_candidates=F("node_ids__len")),
        limit=query.limit,
        cursor=query.cursor,
        owner=owner,
        listing="receipts",
        filters=query.filters,
    )
    return {"receipts": [_listed(row) for row in page.items], "next_cursor": page.next_cursor}


def _narrowed(query: ReceiptsQuery) -> dict[str, Any]:
    given = {
        "recorded_at__gte": query.since,
        "recorded_at__lt": query.until,
        "formula": query.formula,
        "scopes": sorted(set(query.scope)) or None,
        "query_identity": query.query_identity,
        "profile_status": query.profile,
        "profile_id": query.profile_id,
        "mode": query.mode,
        "trace_id": query.trace_id,
    }
    return {name: value for name, value in given.items() if value is not None}


def _listed(row: Any) -> dict[str, Any]:
    return {
        "receipt_id": str(row.id),
        "form": "native",
        "request_id": None,
        "timestamp": clock.iso(row.recorded_at),
        "mode": row.mode,
        "query": {"trace_id": _text(row.trace_id), "identity": row.query_identity},
        "scopes": row.scopes,
        "policy_id": _text(row.policy_id),
        "formula": row.formula,
        "contract": row.contract,
        "profile": {"id": _text(row.profile_id), "status": row.profile_status},
        "candidates": row.num_candidates,
        "checksum": row.checksum,
    }


def receipt_shown(found: StoredReceipt) -> bytes:
    """The answer about one receipt, canonical; the document stands in it byte for byte as it was stored."""
    rest = {
        "checksum": found.checksum,
        "receipt_id": str(found.id),
        "timestamp": clock.iso(found.recorded_at),
        "trace_id": _text(found.trace_id),
    }
    # `checksum` < `receipt` < the others: the canonical order of members.
    head, tail = writing.dumps({"checksum": rest.pop("checksum")}), writing.dumps(rest)
    return head[:-1] + b',"receipt":' + found.document + b"," + tail[1:]


def replay_shown(found: StoredReceipt, replayed: Replay) -> dict[str, Any]:
    """The verdict of a replay."""
    return {
        "receipt_id": str(found.id),
        "checksum": found.checksum,
        "contract": found.receipt.features.contract,
        "verified": replayed.exact,
        "candidates": len(replayed.scores),
        "scores": [
            {"node_id": candidate.node_id, "recorded": candidate.score, "replayed": score}
            for candidate, score in zip(found.receipt.candidates, replayed.scores, strict=True)
        ],
        "drifted": len(replayed.drifts),
        "weights_equal": replayed.weights_equal,
        "order_equal": replayed.order_equal,
    }


def _text(value: UUID | None) -> str | None:
    return str(value) if value else None
