"""Evaluation inputs from files that PRME exported.

Receipts are streamed: labels are read first, each receipt is verified, checked against its labels, turned
into columns and spooled to disk for the checksum, which runs over all receipts in the order of their ids.
"""

import hashlib
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from apps.learning.evaluate import EvaluationInputs
from apps.learning.exceptions import ConflictingIdentity, ForeignInput, LearningInputError, UnknownReference
from apps.learning.prme_receipts import PRME_CONTRACT, PrmeReceiptColumns
from apps.learning.receipt_set import NO_GRADE, LabelSet, ReceiptSet
from apps.retrieval.prme.documents import LabelRecord
from apps.retrieval.prme.exceptions import ForeignLabel, UnknownLabelledNode
from apps.retrieval.prme.labels import check_labels
from apps.retrieval.prme.reading import PrmeReceipt, load_json

_SPOOL_IN_MEMORY = 32 * 1024 * 1024


def evaluation_inputs(
    receipts: Iterable[PrmeReceipt],
    records: Iterable[LabelRecord],
    *,
    query_groups: Mapping[str, str] | None = None,
    owner: str | None = None,
) -> EvaluationInputs:
    """Inputs of `evaluate` from verified receipts and label records, in any order, repeats allowed.

    `owner` is PRME's user id; without it, that of the receipts. Raises a LearningInputError when a label
    names no receipt, another checksum, a node that was not returned or, on the context, one without its
    content; when one id stands for two things; when an input belongs to another owner.
    """
    ordered = _distinct_records(records)
    by_request: defaultdict[str, list[LabelRecord]] = defaultdict(list)
    for record in ordered:
        by_request[record.request_id].append(record)
    columns = PrmeReceiptColumns()
    positions: dict[str, dict[str, int]] = {}
    groups = dict(query_groups or {})
    with ReceiptSpool() as spool:
        for receipt in receipts:
            owner = _one_owner(owner, receipt.document.user_id)
            if spool.add(receipt):
                columns.add(receipt)
                own_records = by_request[receipt.document.request_id]
                positions |= _judged_positions(receipt, own_records)
        if owner is None:
            raise LearningInputError("there are no receipts")
        _check_records(ordered, spool, owner)
        checksum = _input_checksum(spool, ordered, groups)
    receipt_set = columns.build()
    return EvaluationInputs(
        owner=owner,
        receipts=receipt_set,
        labels=_label_set(receipt_set, ordered, positions),
        query_groups=groups,
        input_checksum=checksum,
        scorer_contract=PRME_CONTRACT,
        resampling="python_mersenne",
    )


class ReceiptSpool:
    """Raw receipts by request id, in memory up to 32 MB and in a temporary file beyond."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_SPOOL_IN_MEMORY)  # noqa: SIM115 - closed by __exit__
        self._places: dict[str, tuple[str, int, int]] = {}

    def __enter__(self) -> "ReceiptSpool":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._places

    def add(self, receipt: PrmeReceipt) -> bool:
        """Whether the receipt is new; a repetition byte for byte is not.

        Raises ConflictingIdentity for other bytes under the same request id.
        """
        request_id = receipt.document.request_id
        known = self._places.get(request_id)
        if known is not None:
            if known[0] != receipt.checksum:
                raise ConflictingIdentity("two receipts have one request id")
            return False
        start = self._file.tell()
        self._file.write(receipt.raw)
        self._places[request_id] = (receipt.checksum, start, len(receipt.raw))
        return True

    def sorted_raw(self) -> Iterable[bytes]:
        """Raw receipts in ascending order of request id; nothing may be added after."""
        for _, (_, start, length) in sorted(self._places.items()):
            self._file.seek(start)
            yield self._file.read(length)


def _distinct_records(records: Iterable[LabelRecord]) -> list[LabelRecord]:
    """Records in ascending order of feedback id, repetitions once."""
    distinct: dict[str, LabelRecord] = {}
    for record in records:
        if distinct.setdefault(record.feedback_id, record) != record:
            raise ConflictingIdentity("two label records have one feedback id")
    return [record for _, record in sorted(distinct.items())]


def _one_owner(owner: str | None, other: str) -> str:
    if owner is not None and owner != other:
        raise ForeignInput("receipts and labels belong to more than one owner")
    return other


def _check_records(records: Sequence[LabelRecord], spool: ReceiptSpool, owner: str) -> None:
    for record in records:
        _one_owner(owner, record.user_id)
        if record.request_id not in spool:
            raise UnknownReference("a label record names an unknown receipt")


def _judged_positions(receipt: PrmeReceipt, records: Sequence[LabelRecord]) -> dict[str, dict[str, int]]:
    """Position of each node in the pool, by request id; empty where no label will be fitted."""
    document = receipt.document
    if not records:
        return {}
    _check_labels(records, receipt)
    if document.formula != "weighted":
        return {}
    return {document.request_id: {c.node_id: index for index, c in enumerate(document.candidates)}}


def _check_labels(records: Sequence[LabelRecord], receipt: PrmeReceipt) -> None:
    candidates = {candidate.node_id: candidate for candidate in receipt.document.candidates}
    for record in records:
        try:
            check_labels(record, checksum=receipt.checksum, candidates=candidates)
        except ForeignLabel as foreign:
            raise ConflictingIdentity(foreign.detail) from None
        except UnknownLabelledNode as unknown:
            raise UnknownReference(unknown.detail) from None


def _label_set(
    receipts: ReceiptSet, records: Sequence[LabelRecord], positions: Mapping[str, Mapping[str, int]]
) -> LabelSet:
    index_of = {request_id: index for index, request_id in enumerate(receipts.request_ids)}
    record_receipt = [index_of[record.request_id] for record in records]
    labels = [
        (index, int(receipts.offsets[receipt]) + positions[record.request_id][node_id], label)
        for index, (record, receipt) in enumerate(zip(records, record_receipt, strict=True))
        if record.request_id in positions
        for node_id, label in sorted(record.labels.items())
    ]
    return LabelSet(
        feedback_ids=tuple(record.feedback_id for record in records),
        record_receipt=np.array(record_receipt, dtype=np.int64),
        record_surface=tuple(record.surface for record in records),
        label_record=np.array([label[0] for label in labels], dtype=np.int64),
        label_row=np.array([label[1] for label in labels], dtype=np.int64),
        label_value=np.array([label[2] for label in labels], dtype=bool),
        label_grade=np.full(len(labels), NO_GRADE, dtype=np.int8),
    )


def _input_checksum(
    spool: ReceiptSpool, records: Sequence[LabelRecord], query_groups: Mapping[str, str]
) -> str:
    """PRME's checksum over groups, receipts and records, without holding them all."""
    digest = hashlib.sha256(b'{"query_groups":' + _escaped(dict(query_groups)) + b',"receipts":[')
    for index, raw in enumerate(spool.sorted_raw()):
        digest.update((b"," if index else b"") + _escaped(load_json(raw)))
    digest.update(b'],"records":' + _escaped([record.model_dump(mode="json") for record in records]) + b"}")
    return digest.hexdigest()


def _escaped(value: Any) -> bytes:
    """Compact JSON with sorted keys and escaped non-ASCII characters: the form that PRME hashes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
