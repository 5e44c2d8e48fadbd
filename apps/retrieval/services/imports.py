"""Import of receipts and label records that PRME wrote.

The law: bytes are kept as they came; nothing is stored that was not verified and, from version 2 on, replayed; a
call stores all of its lines or none. The same thing again changes nothing; another thing under a known id is refused.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Any
from uuid import UUID

from django.db import transaction

from apps.core import canonical, clock, policies
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.locks import lock_import
from apps.core.db.sessions import current_principal
from apps.core.ids import uuid7
from apps.retrieval.exceptions import ImportConflict, ImportRefused
from apps.retrieval.identity import keyed_query_identity
from apps.retrieval.models import PrmeLabelRecord, PrmeReceipt
from apps.retrieval.prme import reading
from apps.retrieval.prme.documents import LabelRecord, ReceiptDocument
from apps.retrieval.prme.exceptions import ForeignLabel, InvalidLabelRecord, PrmeError
from apps.retrieval.prme.labels import check_labels
from apps.retrieval.services.receipts import hash_key

EVIDENCE_TERM = "gate"
"""The kind of the stored policy that says how long everything is kept that learning may have to reproduce."""
BATCH = 200
"""Lines that one statement stores: some MiB."""

Line = tuple[int, bytes]


@dataclass(frozen=True, slots=True)
class ImportedReceipt:
    """A receipt of the import. `stored`: by this call, or by an earlier one."""

    request_id: UUID
    receipt_id: UUID
    checksum: str
    stored: bool


@dataclass(slots=True)
class Imported:
    """Counts of an import; `known` were there already, byte for byte."""

    receipts: int = 0
    known_receipts: int = 0
    labels: int = 0
    known_labels: int = 0


@dataclass(slots=True)
class _Import:
    """One import under way. Label records wait until all receipts of the call are there."""

    owner: PrincipalIdentity
    key: bytes
    kept: timedelta
    told: Callable[[int, Sequence[ImportedReceipt]], None]
    counts: Imported = field(default_factory=Imported)
    waiting: list[tuple[int, reading.PrmeLabels]] = field(default_factory=list)


def import_lines(
    *,
    lines: Iterable[Line],
    told: Callable[[int, Sequence[ImportedReceipt]], None] = lambda count, receipts: None,
) -> Imported:
    """Store what numbered lines hold, receipts and label records in any order, for the session's principal.

    `told` hears after each batch how many lines it had and which receipts. Raises ImportRefused (400) and
    ImportConflict (409), both with the number of the line, and what `lines` raises; then nothing is stored.
    """
    owner = current_principal()
    with transaction.atomic():
        lock_import(owner.principal_id)
        running = _Import(owner, hash_key(), term_in_effect(owner.workspace_id), told)
        rest = iter(lines)
        while batch := list(islice(rest, BATCH)):
            _store_receipts(running, _read(running, batch), len(batch))
        for start in range(0, len(running.waiting), BATCH):
            _store_labels(running, running.waiting[start : start + BATCH])
    return running.counts


def term_in_effect(workspace_id: UUID) -> timedelta:
    """How long an imported receipt is kept from its import on; `retrieval_redate_prme` follows a later policy."""
    document: Any = policies.document_of(policies.current_policy(workspace_id, EVIDENCE_TERM))
    return timedelta(days=document.retention_days)


def _refused(number: int, error: PrmeError) -> ImportRefused:
    return ImportRefused(
        f"line {number}: {error.detail}", pointer=error.pointer or None, code=error.code, line=number
    )


def _conflict(number: int, what: str) -> ImportConflict:
    return ImportConflict(f"line {number}: {what}", line=number)


def _read(running: _Import, batch: Sequence[Line]) -> dict[UUID, tuple[int, reading.PrmeReceipt]]:
    """The receipts of a batch by request id, each once."""
    found: dict[UUID, tuple[int, reading.PrmeReceipt]] = {}
    for number, line in batch:
        try:
            read = reading.read_line(line)
        except PrmeError as error:
            raise _refused(number, error) from None
        if isinstance(read, reading.PrmeLabels):
            running.waiting.append((number, read))
            continue
        known = found.setdefault(UUID(read.document.request_id), (number, read))[1]
        if known.checksum != read.checksum:
            raise _conflict(number, "other bytes under a request id that came before")
        running.counts.known_receipts += known is not read
    return found


def _store_receipts(
    running: _Import, receipts: dict[UUID, tuple[int, reading.PrmeReceipt]], num_lines: int
) -> None:
    rows = {request_id: _row(running, receipt) for request_id, (_, receipt) in receipts.items()}
    PrmeReceipt.objects.bulk_create(rows.values(), ignore_conflicts=True)
    stored = PrmeReceipt.objects.filter(
        principal_id=running.owner.principal_id, request_id__in=list(rows)
    ).values_list("request_id", "id", "checksum")
    found = {request_id: (receipt_id, checksum) for request_id, receipt_id, checksum in stored}
    told = []
    for request_id, row in rows.items():
        receipt_id, checksum = found.get(request_id, (row.pk, ""))
        if checksum != row.checksum:
            number = receipts[request_id][0]
            raise _conflict(number, "other bytes, or an expired receipt, have this request id")
        told.append(ImportedReceipt(request_id, receipt_id, checksum, stored=receipt_id == row.pk))
    new = sum(one.stored for one in told)
    running.counts.receipts += new
    running.counts.known_receipts += len(told) - new
    running.told(num_lines, told)


def _row(running: _Import, receipt: reading.PrmeReceipt) -> PrmeReceipt:
    document, now = receipt.document, clock.now()
    scopes = document.scope_key
    return PrmeReceipt(
        id=uuid7(),
        workspace_id=running.owner.workspace_id,
        principal_id=running.owner.principal_id,
        request_id=UUID(document.request_id),
        imported_at=now,
        expires_at=now + running.kept,
        reference_time=document.reference_time,
        schema_version=document.schema_version,
        formula=document.formula,
        scopes=None if scopes is None else list(scopes),
        query_identity=keyed_query_identity(document.query, running.key),
        candidate_count=len(document.candidates),
        document=receipt.raw.decode(),
        checksum=receipt.checksum,
    )


def _store_labels(running: _Import, batch: Sequence[tuple[int, reading.PrmeLabels]]) -> None:
    owner = running.owner.principal_id
    asked = {UUID(labels.record.request_id) for _, labels in batch}
    receipts = PrmeReceipt.objects.filter(principal_id=owner, request_id__in=asked)
    receipt_ids = _check_labels(batch, receipts)
    rows: dict[UUID, tuple[int, PrmeLabelRecord]] = {}
    for number, labels in batch:
        row = _label_row(running.owner, labels, receipt_ids[labels.record.request_id])
        known = rows.setdefault(row.feedback_id, (number, row))[1]
        if known.content_sha256 != row.content_sha256:
            raise _conflict(number, "another label record under a feedback id that came before")
        running.counts.known_labels += known is not row
    PrmeLabelRecord.objects.bulk_create([row for _, row in rows.values()], ignore_conflicts=True)
    stored = PrmeLabelRecord.objects.filter(principal_id=owner, feedback_id__in=list(rows))
    found = {row.feedback_id: row for row in stored.only("id", "feedback_id", "content_sha256")}
    for feedback_id, (number, row) in rows.items():
        there = found.get(feedback_id)
        if there is None or there.content_sha256 != row.content_sha256:
            raise _conflict(number, "another label record has this feedback id")
        new = there.pk == row.pk
        running.counts.labels += new
        running.counts.known_labels += not new


def _check_labels(
    batch: Sequence[tuple[int, reading.PrmeLabels]], receipts: Iterable[PrmeReceipt]
) -> dict[str, UUID]:
    """Ids of the receipts by request id, after every record was held against its own."""
    documents = {str(row.request_id): (row, reading.parse_receipt(row.document.encode())) for row in receipts}
    for number, labels in batch:
        record = labels.record
        found = documents.get(record.request_id)
        try:
            if found is None:
                raise InvalidLabelRecord("no receipt of this request is there", pointer="/request_id")
            _check_record(record, *found)
        except PrmeError as error:
            raise _refused(number, error) from None
    return {request_id: row.pk for request_id, (row, _) in documents.items()}


def _check_record(record: LabelRecord, row: PrmeReceipt, document: ReceiptDocument) -> None:
    if record.user_id != document.user_id:
        raise ForeignLabel("the receipt is another user's", pointer="/user_id")
    candidates = {candidate.node_id: candidate for candidate in document.candidates}
    check_labels(record, checksum=row.checksum, candidates=candidates)


def _label_row(owner: PrincipalIdentity, labels: reading.PrmeLabels, receipt_id: UUID) -> PrmeLabelRecord:
    record = labels.record
    return PrmeLabelRecord(
        id=uuid7(),
        workspace_id=owner.workspace_id,
        principal_id=owner.principal_id,
        receipt_id=receipt_id,
        feedback_id=UUID(record.feedback_id),
        imported_at=clock.now(),
        surface=record.surface,
        label_count=len(record.labels),
        document=labels.raw.decode(),
        content_sha256=canonical.checksum(record.model_dump(mode="json")),
    )
