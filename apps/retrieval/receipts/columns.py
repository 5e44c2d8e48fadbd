"""Many receipts as columns, out of their arrays alone, verified and replayed in a few passes over all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString, get_args
from uuid import UUID

import numpy as np
import numpy.typing as npt
from django.db import connection

from apps.core.db.cursors import session_cursor
from apps.core.db.sessions import current_principal
from apps.retrieval.exceptions import CorruptReceipt
from apps.retrieval.policy import CONTRACTS, FEATURES
from apps.retrieval.receipts import binary
from apps.retrieval.receipts.schemas import AdjustmentKind
from apps.retrieval.scoring import RERANK, RERANK_KEEP, SESSION_DECAY
from apps.retrieval.steps import (
    AffineStep,
    CapStep,
    FloatArray,
    IndexArray,
    RoundStep,
    Step,
    applied_weights,
    weighted_sums,
)

BATCH = 5000
"""Receipts of one statement: some 10 MiB as the database sends them."""
KINDS: tuple[str, ...] = get_args(AdjustmentKind)
_CODES = {kind: code for code, kind in enumerate(KINDS)}

# Of another formula or scorer contract a receipt is known, but has no columns of candidates.
SELECT: LiteralString = """
SELECT r.id, r.checksum, r.query_identity, r.scopes, r.contract, r.formula,
  encode(sha256(convert_to(r.document, 'UTF8')), 'hex') = r.checksum,
  fitted.node_ids, fitted.scores, fitted.features, fitted.channels, fitted.weight_rows, fitted.weights,
  fitted.step_rows, fitted.step_values, fitted.step_kinds
FROM retrieval_receipt r LEFT JOIN LATERAL (
  SELECT r.node_ids, r.scores, r.features, r.channels, r.weight_rows, r.weights, r.step_rows, r.step_kinds,
    r.step_values
  WHERE r.formula = 'weighted' AND r.contract = ANY(%s)) fitted ON true
WHERE r.principal_id = %s AND r.id = ANY(%s) ORDER BY r.id
"""


@dataclass(frozen=True, slots=True)
class ReceiptColumns:
    """r receipts by ascending id, with n candidates of the weighted formula and m adjustments in all.

    scopes       of each receipt; None is all
    formulas     that scored each receipt; one of another than `weighted`, or of a contract that is not replayed
                 here, has no candidates
    offsets      (r + 1,) candidates of receipt i are rows offsets[i]:offsets[i + 1]
    node_ids     (n, 2) both halves of the id, the higher first: they order as the ids do
    scores       (n,) as returned
    features     (6, n) in the order of FEATURES
    channels     (n,) the tie-break after the score, descending; then the node id, ascending
    base, multipliers, applied  (k, 6) weight vectors of all receipts
    weight_rows  (n,) which of them a candidate was scored with
    step_rows    (m,) candidate of each adjustment, ascending; those of one in the order of application
    step_kinds   (m,) its place in KINDS
    """

    ids: tuple[UUID, ...]
    checksums: tuple[str, ...]
    query_identities: tuple[str, ...]
    scopes: tuple[tuple[str, ...] | None, ...]
    contracts: tuple[str, ...]
    formulas: tuple[str, ...]
    offsets: IndexArray
    node_ids: npt.NDArray[np.uint64]
    scores: FloatArray
    features: FloatArray
    channels: IndexArray
    base: FloatArray
    multipliers: FloatArray
    applied: FloatArray
    weight_rows: IndexArray
    step_rows: IndexArray
    step_kinds: npt.NDArray[np.int8]
    step_values: FloatArray

    @property
    def receipt_of_row(self) -> IndexArray:
        """(n,) index of the receipt that each candidate belongs to."""
        return np.repeat(np.arange(len(self.ids), dtype=np.int64), np.diff(self.offsets))

    def steps(self) -> tuple[Step, ...]:
        """What happened after the weighted sum, as `scoring.score_of` does it."""
        return steps_of(self.step_rows, self.step_kinds, self.step_values)

    def replayed(self) -> FloatArray:
        """(n,) every score again, equal to `scoring.score_of` to the last bit."""
        scores = weighted_sums(self.features, self.applied, self.weight_rows)
        for step in self.steps():
            scores = step.apply(scores)
        return scores

    def reranked(self) -> npt.NDArray[np.bool_]:
        """(n,) rows that a reranker scored."""
        found = np.zeros(len(self.scores), dtype=bool)
        found[self.step_rows[self.step_kinds == _CODES[RERANK]]] = True
        return found

    def tie_path(self) -> IndexArray:
        """(n,) what decides between equal scores before the id does, descending; nothing does among reranked rows."""
        return np.where(self.reranked(), 0, self.channels)

    def ordered(self) -> bool:
        """Whether every receipt has the reranked first, then by score, then channels, then id."""
        above, below = slice(None, -1), slice(1, None)
        high, low = self.node_ids[:, 0], self.node_ids[:, 1]
        follows = low[above] < low[below]
        later = ~self.reranked()
        keys = ((high, True), (self.tie_path(), False), (self.scores, False), (later, True))
        for column, rising in keys:
            first, second = (column[above], column[below]) if rising else (column[below], column[above])
            follows = (first < second) | ((first == second) & follows)
        owner = self.receipt_of_row
        return bool((follows | (owner[above] != owner[below])).all())

    def verify(self) -> None:
        """Refuse what does not reproduce itself: applied weights, scores, order. Raises CorruptReceipt."""
        applied = applied_weights(self.base, self.multipliers)
        exact = np.array_equal(applied, self.applied) and np.array_equal(self.replayed(), self.scores)
        if not exact or not self.ordered():
            raise CorruptReceipt("Its scores or its order do not follow from what it records")


def steps_of(rows: IndexArray, kinds: npt.NDArray[np.int8], values: FloatArray) -> tuple[Step, ...]:
    """Adjustments (m,) as steps over a column of scores; `rows` is ascending, `kinds` are codes.

    The first adjustments of all rows come first, then the second ones, and a rounding of all rows last.
    """
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    steps: list[Step] = []
    for level in range(int(place.max(initial=-1)) + 1):
        chosen = place == level
        for code in np.unique(kinds[chosen]).tolist():
            of_kind = chosen & (kinds == code)
            steps.extend(_operations(KINDS[code], rows[of_kind], values[of_kind]))
    return (*steps, RoundStep(None))


def _operations(kind: str, rows: IndexArray, values: FloatArray) -> tuple[Step, ...]:
    if kind == SESSION_DECAY:
        return RoundStep(rows), AffineStep(rows, values, None), RoundStep(rows)
    if kind == RERANK_KEEP:
        return RoundStep(rows), AffineStep(rows, values, None)
    if kind == RERANK:
        return AffineStep(rows, None, values), RoundStep(rows)
    if kind == "relevance_cap":
        return (CapStep(rows, values),)
    if kind == "temporal_bonus":
        return (AffineStep(rows, None, values),)
    return (AffineStep(rows, values, None),)


def load_columns(receipt_ids: Sequence[UUID]) -> ReceiptColumns:
    """The caller's receipts among these, verified; unknown and foreign ids are absent.

    Bytes are held against their checksum in the database, so that no document is read here; that the arrays
    reproduce scores and order is computed. Raises CorruptReceipt.
    """
    wanted = sorted(set(receipt_ids))
    owner = current_principal().principal_id
    batches = []
    for start in range(0, max(len(wanted), 1), BATCH):
        with connection.wrap_database_errors:
            cursor = session_cursor()
            binary.load_elements(cursor)
            values = [list(CONTRACTS), owner, wanted[start : start + BATCH]]
            rows = cursor.execute(SELECT, values, binary=True).fetchall()
        batches.append(_columns_of(rows))
    columns = batches[0] if len(batches) == 1 else _joined(batches)
    columns.verify()
    return columns


def _columns_of(rows: Sequence[tuple[Any, ...]]) -> ReceiptColumns:
    """From rows of `SELECT`. Raises CorruptReceipt for bytes that are not those of their checksum."""
    ids, checksums, identities, scopes, contracts, formulas, sound, *parts = (
        zip(*rows, strict=True) if rows else ((),) * 16
    )
    if not all(sound):
        raise CorruptReceipt("The bytes are not those that the checksum was taken over")
    *parts, kinds = parts
    nodes, scores, features, channels, weight_rows, weights, step_rows, values = (
        [part or b"" for part in each] for each in parts
    )
    sizes, step_sizes = (binary.lengths(nodes, binary.UUID16), binary.lengths(step_rows, binary.INT2))
    vector_sizes = binary.lengths(weights, binary.FLOAT8) // (3 * len(FEATURES))
    offsets = _starts(sizes)
    vectors = binary.flat(weights, binary.FLOAT8).reshape(-1, 3, len(FEATURES))
    return ReceiptColumns(
        ids=tuple(ids),
        checksums=tuple(checksums),
        query_identities=tuple(identities),
        scopes=tuple(None if each is None else tuple(each) for each in scopes),
        contracts=tuple(contracts),
        formulas=tuple(formulas),
        offsets=offsets,
        node_ids=binary.flat(nodes, binary.UUID16),
        scores=binary.flat(scores, binary.FLOAT8),
        features=np.ascontiguousarray(binary.flat(features, binary.FLOAT8).reshape(-1, len(FEATURES)).T),
        channels=binary.flat(channels, binary.INT2).astype(np.int64),
        base=np.ascontiguousarray(vectors[:, 0]),
        multipliers=np.ascontiguousarray(vectors[:, 1]),
        applied=np.ascontiguousarray(vectors[:, 2]),
        weight_rows=binary.flat(weight_rows, binary.INT2) + np.repeat(_starts(vector_sizes)[:-1], sizes),
        step_rows=binary.flat(step_rows, binary.INT2) + np.repeat(offsets[:-1], step_sizes),
        step_kinds=np.array([_CODES[kind] for each in kinds for kind in each or ()], dtype=np.int8),
        step_values=binary.flat(values, binary.FLOAT8),
    )


def _starts(sizes: IndexArray) -> IndexArray:
    """(r + 1,) where each part begins, and the end of the last."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])


# Columns that point into others, and those into which they point.
_POINTERS = {"offsets": "scores", "weight_rows": "base", "step_rows": "scores"}


def _joined(batches: Sequence[ReceiptColumns]) -> ReceiptColumns:
    """One after the other, in the order given."""
    columns: dict[str, Any] = {}
    for name in ReceiptColumns.__slots__:
        parts = [getattr(batch, name) for batch in batches]
        if isinstance(parts[0], tuple):
            columns[name] = tuple(value for part in parts for value in part)
            continue
        if name in _POINTERS:
            before = _starts(np.array([len(getattr(batch, _POINTERS[name])) for batch in batches]))
            parts = [part + shift for part, shift in zip(parts, before.tolist(), strict=False)]
        if name == "offsets":
            parts = [parts[0], *(part[1:] for part in parts[1:])]
        columns[name] = np.concatenate(parts, axis=1 if name == "features" else 0)
    return ReceiptColumns(**columns)
