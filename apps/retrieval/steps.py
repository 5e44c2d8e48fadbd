"""What happens to a column of scores after the weighted sum: factors, bonuses, bounds and rounding, in their order.

Operations and their order are those of the scalar replays, so that every double is equal to theirs; nothing is
fused or reordered for speed. A step names the rows that it changes; None is all of them.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from apps.retrieval.prme.rounding import round_scores

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.int64]


class Step(Protocol):
    """One operation on a column of scores."""

    def apply(self, scores: FloatArray) -> FloatArray:
        """The scores after it; may change its argument in place."""

    def take(self, rows: IndexArray, total: int) -> "Step | None":
        """The same step on a selection of rows out of `total`; None where it changes none of them."""


@dataclass(frozen=True, slots=True)
class AffineStep:
    """`score * scale + shift`. A scale or shift of None is left out."""

    rows: IndexArray | None
    scale: FloatArray | None
    shift: FloatArray | None

    @classmethod
    def of(cls, scale: FloatArray, shift: FloatArray) -> "AffineStep | None":
        """The step over columns of all rows, narrowed to what it changes; None if it changes nothing."""
        scales, shifts = scale != 1.0, shift != 0.0
        changed = scales | shifts
        if not changed.any():
            return None
        rows = None if changed.mean() > 0.5 else np.flatnonzero(changed)
        return cls(
            rows=rows,
            scale=(scale if rows is None else scale[rows]) if scales.any() else None,
            shift=(shift if rows is None else shift[rows]) if shifts.any() else None,
        )

    def apply(self, scores: FloatArray) -> FloatArray:
        part = scores if self.rows is None else scores[self.rows]
        if self.scale is not None:
            part *= self.scale
        if self.shift is not None:
            part += self.shift
        if self.rows is not None:
            scores[self.rows] = part
        return scores

    def take(self, rows: IndexArray, total: int) -> "AffineStep | None":
        scale, shift = np.ones(total), np.zeros(total)
        where = slice(None) if self.rows is None else self.rows
        if self.scale is not None:
            scale[where] = self.scale
        if self.shift is not None:
            shift[where] = self.shift
        return AffineStep.of(scale[rows], shift[rows])


@dataclass(frozen=True, slots=True)
class CapStep:
    """At most `bound`, which is inf where there is none."""

    rows: IndexArray | None
    bound: FloatArray

    @classmethod
    def of(cls, bound: FloatArray) -> "CapStep | None":
        """The step over a column of all rows; None if it bounds nothing."""
        return None if np.isposinf(bound).all() else cls(None, bound)

    def apply(self, scores: FloatArray) -> FloatArray:
        if self.rows is None:
            np.minimum(scores, self.bound, out=scores)
        else:
            scores[self.rows] = np.minimum(scores[self.rows], self.bound)
        return scores

    def take(self, rows: IndexArray, total: int) -> "CapStep | None":
        bound = np.full(total, np.inf)
        bound[slice(None) if self.rows is None else self.rows] = self.bound
        return CapStep.of(bound[rows])


@dataclass(frozen=True, slots=True)
class RoundStep:
    """Rounds to ten decimals."""

    rows: IndexArray | None

    def apply(self, scores: FloatArray) -> FloatArray:
        if self.rows is None:
            return round_scores(scores)
        scores[self.rows] = round_scores(scores[self.rows])
        return scores

    def take(self, rows: IndexArray, total: int) -> "RoundStep | None":
        if self.rows is None:
            return self
        rounded = np.zeros(total, dtype=bool)
        rounded[self.rows] = True
        kept = np.flatnonzero(rounded[rows])
        return RoundStep(kept) if len(kept) else None


def weighted_sums(features: FloatArray, weights: FloatArray, weight_row: IndexArray) -> FloatArray:
    """(n,) sums of features (f, n) under the weight vectors (w, f), of which `weight_row` (n,) names one a column.

    Left to right and without compensation, as the formula is defined.
    """
    sums: FloatArray = features[0] * _column(weights, 0, weight_row)
    product = np.empty_like(sums)
    for index in range(1, len(features)):
        np.multiply(features[index], _column(weights, index, weight_row), out=product)
        sums += product
    return sums


def _column(weights: FloatArray, index: int, weight_row: IndexArray) -> FloatArray | np.float64:
    if len(weights) == 1:
        return np.float64(weights[0, index])
    column: FloatArray = weights[:, index].take(weight_row)
    return column


def applied_weights(weights: FloatArray, multipliers: FloatArray) -> FloatArray:
    """Weights (w, 6) times multipliers (6,) or (w, 6), each row divided by its sum.

    Rows of which all multipliers are 1 stay as they are, bit for bit, and so do rows that sum to 0.
    """
    scaled = weights * multipliers
    total = scaled[:, 0].copy()
    for index in range(1, weights.shape[1]):
        total += scaled[:, index]
    total[total == 0.0] = 1.0
    unity = np.broadcast_to((multipliers == 1.0).all(axis=-1), len(weights))
    applied: FloatArray = np.where(unity[:, None], weights, scaled / total[:, None])
    return applied
