"""From all labels of an owner to the judged pool that is fitted and measured, every exclusion counted."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from apps.learning.exceptions import NotReproducible, TooLarge
from apps.learning.metrics import JudgedPool
from apps.learning.receipt_set import NO_GRADE, BoolArray, LabelSet, ReceiptSet, Surface
from apps.learning.scorer import FEATURES, FloatArray, IndexArray

_UNGRADED_HIGH = 127


@dataclass(frozen=True, slots=True)
class Selection:
    """What remains of receipts and labels for one evaluation.

    receipts    (q,) index of each receipt that gives pairs, ascending
    rows        (j,) unambiguously judged candidates, as rows of the ReceiptSet
    pool        the same candidates as a pool of q requests
    graded      (q,) whether all labels of the request have grades
    eligible    (r,) receipts that may be fitted, judged or not
    has_true, has_false  (n,) which labels each candidate has among the records that count
    """

    receipts: IndexArray
    rows: IndexArray
    pool: JudgedPool
    graded: BoolArray
    eligible: BoolArray
    has_true: BoolArray
    has_false: BoolArray
    exclusions: dict[str, int]


def select(
    receipts: ReceiptSet,
    labels: LabelSet,
    *,
    scopes: tuple[str, ...] | None,
    surface: Surface,
    contract: str,
    max_pairs_per_request: int,
) -> Selection:
    """Apply the exclusions in their order: surface, scopes, replay, formula, contract; then labels.

    Raises TooLarge above `max_pairs_per_request`, NotReproducible when a judged candidate's recorded score
    is not the one that its features give.
    """
    reasons = _receipt_exclusions(receipts, scopes, contract)
    counted, exclusions = _record_exclusions(labels, reasons, surface)
    kept = counted[labels.label_record]
    has_true, has_false = (_rows_with(labels, kept, value, len(receipts.recorded)) for value in (True, False))
    judged = has_true ^ has_false
    owner = receipts.receipt_of_row
    pairs = _pairs_of_receipts(owner, has_true & judged, has_false & judged, len(receipts))
    if len(pairs) and pairs.max() > max_pairs_per_request:
        raise TooLarge("a request has more label pairs than max_pairs_per_request")
    if considered := set(labels.record_receipt[counted].tolist()):
        exclusions["conflicting_candidate_labels"] = int((has_true & has_false).sum())
    if without := sum(pairs[receipt] == 0 for receipt in considered):
        exclusions["requests_without_explicit_pairs"] = int(without)
    used = np.flatnonzero(pairs > 0)
    rows = np.flatnonzero(judged & (pairs > 0)[owner])
    _check_baseline(receipts, rows)
    pool, graded = _pool(receipts, labels, kept, used, rows, has_true)
    eligible = np.array([reason is None for reason in reasons], dtype=bool)
    counts = dict(sorted(exclusions.items()))
    return Selection(used, rows, pool, graded, eligible, has_true, has_false, counts)


def _receipt_exclusions(
    receipts: ReceiptSet, scopes: tuple[str, ...] | None, contract: str
) -> list[str | None]:
    """Why the records of each receipt do not count; None where they do."""
    columns = zip(receipts.scopes, receipts.formulas, receipts.contracts, strict=True)
    return [_receipt_exclusion(*column, scopes=scopes, contract=contract) for column in columns]


def _receipt_exclusion(
    own_scopes: tuple[str, ...] | None,
    formula: str,
    own_contract: str,
    *,
    scopes: tuple[str, ...] | None,
    contract: str,
) -> str | None:
    if own_scopes != scopes:
        return "other_scope_records"
    if formula == "none":
        return "legacy_receipt_records"
    if formula == "rank_fusion":
        return "rank_fusion_receipt_records"
    if own_contract != contract:
        return "other_contract_records"
    return None


def _record_exclusions(
    labels: LabelSet, reasons: Sequence[str | None], surface: Surface
) -> tuple[BoolArray, dict[str, int]]:
    """(m,) which records count, and how many do not by the first reason that applies."""
    counted = np.zeros(len(labels), dtype=bool)
    exclusions: dict[str, int] = {}
    for index, own_surface in enumerate(labels.record_surface):
        receipt = int(labels.record_receipt[index])
        reason = "other_surface_records" if own_surface != surface else reasons[receipt]
        if reason is None:
            counted[index] = True
        else:
            exclusions[reason] = exclusions.get(reason, 0) + 1
    return counted, exclusions


def _pairs_of_receipts(
    owner: IndexArray, positive: BoolArray, negative: BoolArray, num_receipts: int
) -> IndexArray:
    """(r,) pairs that the unambiguous labels of each receipt give."""
    positives = np.bincount(owner[positive], minlength=num_receipts)
    return positives * np.bincount(owner[negative], minlength=num_receipts)


def _rows_with(labels: LabelSet, kept: BoolArray, value: bool, num_rows: int) -> BoolArray:
    rows = np.zeros(num_rows, dtype=bool)
    rows[labels.label_row[kept & (labels.label_value == value)]] = True
    return rows


def _check_baseline(receipts: ReceiptSet, rows: IndexArray) -> None:
    replayed = receipts.scorer.take(rows).scores(np.ones(len(FEATURES)))
    if (replayed != receipts.recorded[rows]).any():
        raise NotReproducible("a recorded score is not reproduced")


def _pool(
    receipts: ReceiptSet,
    labels: LabelSet,
    kept: BoolArray,
    used: IndexArray,
    rows: IndexArray,
    has_true: BoolArray,
) -> tuple[JudgedPool, BoolArray]:
    request = np.searchsorted(used, receipts.receipt_of_row[rows])
    relevant = has_true[rows]
    grade = _grades(labels, kept, len(receipts.recorded))[rows]
    ungraded = np.bincount(request[grade == NO_GRADE], minlength=len(used)) > 0
    # Without a gain above 0 among its grades a request has no ideal order; the labels then rule.
    gains = np.ldexp(1.0, np.maximum(grade, 0).astype(np.int32)) - 1.0
    graded = ~ungraded & (np.bincount(request, weights=gains, minlength=len(used)) > 0)
    gain: FloatArray = np.where(graded[request], gains, relevant.astype(np.float64))
    pool = JudgedPool(
        num_requests=len(used),
        request=request,
        relevant=relevant,
        gain=gain,
        tie_group=receipts.tie_group[rows],
        tie_path=receipts.tie_path[rows],
        id_rank=receipts.id_rank[rows],
    )
    return pool, graded


def _grades(labels: LabelSet, kept: BoolArray, num_rows: int) -> IndexArray:
    """(n,) the one grade of each candidate; NO_GRADE where a label has none or two differ."""
    low, high = np.full(num_rows, _UNGRADED_HIGH), np.full(num_rows, NO_GRADE)
    np.minimum.at(low, labels.label_row[kept], labels.label_grade[kept])
    np.maximum.at(high, labels.label_row[kept], labels.label_grade[kept])
    return np.where(low == high, low, NO_GRADE)
