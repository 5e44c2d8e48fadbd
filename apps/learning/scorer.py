"""The weighted formula over columns of candidates, replayed exactly under any multipliers.

A score is the weighted sum of six features, then affine steps (factors, bonuses), a cap, rounding to ten
decimals, and affine steps again (recorded adjustments). Operations and their order are those of the scalar
replay, so that every double is equal to it; nothing is fused or reordered for speed.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from apps.learning.exceptions import LearningInputError
from apps.retrieval.prme.rounding import round_scores

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.int64]
FEATURES = ("semantic", "lexical", "graph", "recency", "salience", "confidence")
MULTIPLIER_LOW, MULTIPLIER_HIGH = 0.25, 4.0


@dataclass(frozen=True, slots=True)
class AffineStep:
    """`score * scale + shift` on some rows (None: all). A scale or shift of None is left out."""

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

    def apply(self, scores: FloatArray) -> None:
        """Change `scores` in place."""
        part = scores if self.rows is None else scores[self.rows]
        if self.scale is not None:
            part *= self.scale
        if self.shift is not None:
            part += self.shift
        if self.rows is not None:
            scores[self.rows] = part

    def take(self, rows: IndexArray, total: int) -> "AffineStep | None":
        """The same step on a selection of rows out of `total`."""
        scale, shift = np.ones(total), np.zeros(total)
        where = slice(None) if self.rows is None else self.rows
        if self.scale is not None:
            scale[where] = self.scale
        if self.shift is not None:
            shift[where] = self.shift
        return AffineStep.of(scale[rows], shift[rows])


@dataclass(frozen=True, slots=True)
class WeightedScorer:
    """Columns of n candidates.

    features   (6, n) in the order of FEATURES
    weights    (w, 6) distinct weight vectors as applied, before multipliers
    weight_row (n,)   which of them a candidate was scored with
    before     steps between the weighted sum and the cap
    cap        (n,)   upper bound, inf where there is none; None where no row has one
    after      steps after rounding
    """

    features: FloatArray
    weights: FloatArray
    weight_row: IndexArray
    before: tuple[AffineStep, ...]
    cap: FloatArray | None
    after: tuple[AffineStep, ...]

    def __len__(self) -> int:
        return len(self.weight_row)

    def scores(self, multipliers: FloatArray) -> FloatArray:
        """Scores (n,) under multipliers (6,); all ones reproduce the recorded scores bit for bit.

        Raises LearningInputError for multipliers outside of [.25, 4].
        """
        weights = applied_weights(self.weights, multipliers)
        scores: FloatArray = self.features[0] * self._column(weights, 0)
        product = np.empty_like(scores)
        for index in range(1, len(FEATURES)):
            np.multiply(self.features[index], self._column(weights, index), out=product)
            scores += product
        for step in self.before:
            step.apply(scores)
        if self.cap is not None:
            np.minimum(scores, self.cap, out=scores)
        scores = round_scores(scores)
        for step in self.after:
            step.apply(scores)
        return scores

    def take(self, rows: IndexArray) -> Self:
        """The same formula over a selection of candidates, in the order of `rows`."""
        used, weight_row = np.unique(self.weight_row[rows], return_inverse=True)
        before = (step.take(rows, len(self)) for step in self.before)
        after = (step.take(rows, len(self)) for step in self.after)
        cap = None if self.cap is None else self.cap[rows]
        return type(self)(
            features=np.ascontiguousarray(self.features[:, rows]),
            weights=self.weights[used],
            weight_row=weight_row.astype(np.int64),
            before=tuple(step for step in before if step is not None),
            cap=None if cap is None or np.isposinf(cap).all() else cap,
            after=tuple(step for step in after if step is not None),
        )

    def _column(self, weights: FloatArray, index: int) -> FloatArray | np.float64:
        if len(weights) == 1:
            return np.float64(weights[0, index])
        column: FloatArray = weights[:, index].take(self.weight_row)
        return column


def applied_weights(weights: FloatArray, multipliers: FloatArray) -> FloatArray:
    """Weights (w, 6) times multipliers (6,), each row divided by its sum; all ones leave them untouched.

    Raises LearningInputError for a multiplier that is not finite or outside of [.25, 4].
    """
    inside = (multipliers >= MULTIPLIER_LOW) & (multipliers <= MULTIPLIER_HIGH)
    if multipliers.shape != (len(FEATURES),) or not inside.all():
        raise LearningInputError("six multipliers in [.25, 4] are needed")
    if (multipliers == 1.0).all():
        return weights
    scaled = weights * multipliers
    total = scaled[:, 0].copy()
    for index in range(1, len(FEATURES)):
        total += scaled[:, index]
    applied: FloatArray = scaled / total[:, None]
    return applied
