"""Evaluation inputs from the database: the labels in force at the cut, and the receipts that they are on."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, cast
from uuid import UUID

import numpy as np

from apps.core.db.sessions import current_principal
from apps.feedback.selectors.labels import FoldedLabels, folded_labels
from apps.learning.evaluate import EvaluationInputs
from apps.learning.exceptions import TooLarge, UnknownReference
from apps.learning.native_receipts import ABSENT, NativeReceiptSet, load_receipt_set
from apps.learning.receipt_set import BoolArray, LabelSet, Surface
from apps.learning.scorer import IndexArray
from apps.retrieval.policy import SCORER_CONTRACT

Annotators = Literal["conflict", "majority"]
FORMAT = b"native-evaluation-1\n"


@dataclass(frozen=True, slots=True)
class Cut:
    """What an evaluation takes of the principal's data.

    until        what was admitted later is not known
    annotators   whether annotators who disagree are a conflict, or outvoted
    max_records  more label records than that are refused
    """

    until: datetime
    annotators: Annotators
    max_records: int
    query_groups: Mapping[str, str]


def native_inputs(cut: Cut) -> EvaluationInputs:
    """Inputs of `evaluate`, in a session of the principal. Neither graph nor providers are asked.

    Raises TooLarge, UnknownReference (a receipt is gone) or NotReproducible (one is not what was stored).
    """
    folded = folded_labels(until=cut.until)
    if len(folded.offsets) - 1 > cut.max_records:
        raise TooLarge("more label records than max_records")
    receipts = load_receipt_set(folded.receipt_ids)
    kept = outvoted(folded) if cut.annotators == "majority" else np.zeros(len(folded), dtype=bool)
    labels = label_set(folded, receipts, left_out=kept)
    return EvaluationInputs(
        owner=str(current_principal().principal_id),
        receipts=receipts,
        labels=labels,
        query_groups=dict(cut.query_groups),
        input_checksum=_input_checksum(receipts, folded, cut),
        scorer_contract=SCORER_CONTRACT,
        resampling="pcg64_multiply_shift",
        set_aside={"outvoted_labels": int(kept.sum())} if kept.any() else {},
    )


def label_set(folded: FoldedLabels, receipts: NativeReceiptSet, *, left_out: BoolArray) -> LabelSet:
    """The labels by row of the receipts; those `left_out` (l,) stay records without that label.

    Labels on receipts without candidates (another formula, no replay) are left out, as records they count.
    """
    first = folded.offsets[:-1]
    record_of = np.repeat(np.arange(len(first)), np.diff(folded.offsets))
    record_receipt = receipts.receipt_indexes([folded.receipt_ids[row] for row in first.tolist()])
    rows = receipts.candidate_rows(record_receipt[record_of], folded.node_ids)
    _check_known(rows, record_receipt[record_of], receipts)
    taken = (rows != ABSENT) & ~left_out
    return LabelSet(
        feedback_ids=tuple(str(folded.record_ids[row]) for row in first.tolist()),
        record_receipt=record_receipt,
        record_surface=tuple(cast(Surface, folded.surfaces[row]) for row in first.tolist()),
        label_record=record_of[taken].astype(np.int64),
        label_row=rows[taken],
        label_value=folded.values[taken],
        label_grade=folded.grades[taken],
    )


def _check_known(rows: IndexArray, receipt_of_label: IndexArray, receipts: NativeReceiptSet) -> None:
    has_candidates = np.diff(receipts.offsets) > 0
    if ((rows == ABSENT) & has_candidates[receipt_of_label]).any():
        raise UnknownReference("a label names a node that its receipt did not return")


def outvoted(folded: FoldedLabels) -> BoolArray:
    """(l,) labels of the minority where annotators disagree on a node of a receipt; a tie outvotes nobody."""
    votes: dict[tuple[UUID, int, str], list[int]] = {}
    keys = list(zip(folded.receipt_ids, folded.positions.tolist(), folded.surfaces, strict=True))
    for row, key in enumerate(keys):
        votes.setdefault(key, []).append(row)
    lost = np.zeros(len(folded), dtype=bool)
    for rows in votes.values():
        relevant = int(folded.values[rows].sum())
        if 0 < relevant < len(rows) and 2 * relevant != len(rows):
            lost[rows] = folded.values[rows] != (2 * relevant > len(rows))
    return lost


def corrected_since(folded: FoldedLabels) -> bool:
    """Whether a label of this fold is now withdrawn, superseded, or another one of its annotator's."""
    then, now = _in_force(folded), _in_force(folded_labels())
    return any(now.get(key) != said for key, said in then.items())


def _in_force(folded: FoldedLabels) -> dict[tuple[UUID, str, int, str], tuple[bool, int]]:
    keys = zip(folded.receipt_ids, folded.annotators, folded.positions.tolist(), folded.surfaces, strict=True)
    return dict(zip(keys, zip(folded.values.tolist(), folded.grades.tolist(), strict=True), strict=True))


def _input_checksum(receipts: NativeReceiptSet, folded: FoldedLabels, cut: Cut) -> str:
    """SHA-256 over receipts, labels in force, group names and the rule for annotators, a line each."""
    digest = hashlib.sha256(FORMAT)
    digest.update(f"annotators {cut.annotators}\n".encode())
    digest.update(
        _lines(f"receipt {r} {c}" for r, c in zip(receipts.request_ids, receipts.checksums, strict=True))
    )
    labels = zip(
        folded.record_ids,
        folded.receipt_ids,
        folded.node_ids,
        folded.surfaces,
        folded.values.tolist(),
        folded.grades.tolist(),
        folded.annotators,
        strict=True,
    )
    # An annotator's name may hold spaces, so it ends the line.
    digest.update(_lines(f"label {i} {r} {n} {s} {int(v)} {g} {a!r}" for i, r, n, s, v, g, a in labels))
    digest.update(_lines(f"group {r} {name!r}" for r, name in sorted(cut.query_groups.items())))
    return digest.hexdigest()


def _lines(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
