"""The weighted formula over columns of candidates, replayed exactly under any multipliers.

A score is the weighted sum of six features, then steps in their order: factors, bonuses, bounds and rounding.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from apps.learning.exceptions import LearningInputError
from apps.retrieval import steps
from apps.retrieval.policy import FEATURES
from apps.retrieval.scoring import GREATEST_MULTIPLIER as MULTIPLIER_HIGH
from apps.retrieval.scoring import LEAST_MULTIPLIER as MULTIPLIER_LOW
from apps.retrieval.steps import FloatArray, IndexArray, Step

__all__ = [
    "FEATURES",
    "MULTIPLIER_HIGH",
    "MULTIPLIER_LOW",
    "FloatArray",
    "IndexArray",
    "WeightedScorer",
    "applied_weights",
]


@dataclass(frozen=True, slots=True)
class WeightedScorer:
    """Columns of n candidates.

    features   (6, n) in the order of FEATURES
    weights    (w, 6) distinct weight vectors, before multipliers
    weight_row (n,)   which of them a candidate is scored with
    steps      what happens after the weighted sum, rounding included
    """

    features: FloatArray
    weights: FloatArray
    weight_row: IndexArray
    steps: tuple[Step, ...]

    def __len__(self) -> int:
        return len(self.weight_row)

    def scores(self, multipliers: FloatArray) -> FloatArray:
        """Scores (n,) under multipliers (6,): the doubles of the scalar formula, bit for bit.

        Raises LearningInputError for multipliers outside of [.25, 4].
        """
        weights = applied_weights(self.weights, multipliers)
        scores = steps.weighted_sums(self.features, weights, self.weight_row)
        for step in self.steps:
            scores = step.apply(scores)
        return scores

    def take(self, rows: IndexArray) -> Self:
        """The same formula over a selection of candidates, in the order of `rows`."""
        used, weight_row = np.unique(self.weight_row[rows], return_inverse=True)
        taken = (step.take(rows, len(self)) for step in self.steps)
        return type(self)(
            features=np.ascontiguousarray(self.features[:, rows]),
            weights=self.weights[used],
            weight_row=weight_row.astype(np.int64),
            steps=tuple(step for step in taken if step is not None),
        )


def applied_weights(weights: FloatArray, multipliers: FloatArray) -> FloatArray:
    """Weights (w, 6) times multipliers (6,), each row divided by its sum; all ones leave them untouched.

    Raises LearningInputError for a multiplier that is not finite or outside of [.25, 4].
    """
    inside = (multipliers >= MULTIPLIER_LOW) & (multipliers <= MULTIPLIER_HIGH)
    if multipliers.shape != (len(FEATURES),) or not inside.all():
        raise LearningInputError("six multipliers in [.25, 4] are needed")
    return steps.applied_weights(weights, multipliers)
