"""Receipts and their labels as columns: what every loader fills and all of learning computes on."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from apps.learning.exceptions import LearningInputError
from apps.learning.scorer import FloatArray, IndexArray, WeightedScorer

BoolArray = npt.NDArray[np.bool_]
Surface = Literal["results", "context"]
Formula = Literal["none", "weighted", "rank_fusion"]
NO_GRADE = -1


@dataclass(frozen=True, slots=True)
class ReceiptSet:
    """r receipts with n candidates in all, receipts in ascending order of request id.

    A receipt that is not fitted (no replay, another formula) may have an empty pool.

    query_identities  normalised text or keyed hash, by which repetitions are one query
    scopes            sorted scopes of each request; None is unfiltered
    formulas          formula that scored each receipt; `none` cannot be replayed
    contracts         scorer contract of each receipt; receipts of two contracts are not mixed
    offsets           (r + 1,) candidates of receipt i are rows offsets[i]:offsets[i + 1]
    recorded          (n,) scores as returned; of a native receipt, as its base weights alone would have returned
    tie_group         (n,) sorts before the score (a reranked prefix is 0, the rest 1)
    tie_path          (n,) descending after the score; 0 where the ranking policy ignores it
    id_rank           (n,) ascending after that: rank of the node id in its pool
    """

    request_ids: tuple[str, ...]
    checksums: tuple[str, ...]
    query_identities: tuple[str, ...]
    scopes: tuple[tuple[str, ...] | None, ...]
    formulas: tuple[Formula, ...]
    contracts: tuple[str, ...]
    offsets: IndexArray
    recorded: FloatArray
    tie_group: npt.NDArray[np.int8]
    tie_path: FloatArray
    id_rank: npt.NDArray[np.int32]
    scorer: WeightedScorer

    def __post_init__(self) -> None:
        by_receipt = (self.checksums, self.query_identities, self.scopes, self.formulas, self.contracts)
        by_candidate = (self.recorded, self.tie_group, self.tie_path, self.id_rank, self.scorer)
        if any(len(column) != len(self.request_ids) for column in by_receipt):
            raise LearningInputError("columns of receipts differ in length")
        if len(self.offsets) != len(self.request_ids) + 1:
            raise LearningInputError("offsets do not fit the receipts")
        if any(len(column) != self.offsets[-1] for column in by_candidate):
            raise LearningInputError("columns of candidates differ in length")
        if any(a >= b for a, b in zip(self.request_ids, self.request_ids[1:], strict=False)):
            raise LearningInputError("receipts are not in strictly ascending order of request id")

    def __len__(self) -> int:
        return len(self.request_ids)

    @property
    def receipt_of_row(self) -> IndexArray:
        """(n,) index of the receipt that each candidate belongs to."""
        return np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.offsets))


@dataclass(frozen=True, slots=True)
class LabelSet:
    """m label records with l labels in all, records in ascending order of feedback id.

    Labels on receipts with an empty pool may be left out: such records are counted and not fitted.

    record_receipt   (m,) index into the receipts
    record_surface   surface of each record
    label_record     (l,) which record a label is of
    label_row        (l,) which candidate it judges
    label_value      (l,) relevant or not
    label_grade      (l,) 0..4, or NO_GRADE
    """

    feedback_ids: tuple[str, ...]
    record_receipt: IndexArray
    record_surface: tuple[Surface, ...]
    label_record: IndexArray
    label_row: IndexArray
    label_value: BoolArray
    label_grade: npt.NDArray[np.int8]

    def __post_init__(self) -> None:
        if not len(self.feedback_ids) == len(self.record_receipt) == len(self.record_surface):
            raise LearningInputError("columns of records differ in length")
        columns = (self.label_record, self.label_row, self.label_value, self.label_grade)
        if len({len(column) for column in columns}) != 1:
            raise LearningInputError("columns of labels differ in length")
        if any(a >= b for a, b in zip(self.feedback_ids, self.feedback_ids[1:], strict=False)):
            raise LearningInputError("records are not in strictly ascending order of feedback id")

    def __len__(self) -> int:
        return len(self.feedback_ids)
