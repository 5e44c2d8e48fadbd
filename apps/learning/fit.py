"""`pairwise_weight_multipliers_v1`: PRME's coordinate search over a pairwise logistic loss, vectorised.

Only training groups enter. The order of features, the steps and the tie rules are part of the algorithm:
the same input gives the same multipliers as the reference.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from apps.learning.metrics import JudgedPool
from apps.learning.scorer import (
    FEATURES,
    MULTIPLIER_HIGH,
    MULTIPLIER_LOW,
    FloatArray,
    IndexArray,
    WeightedScorer,
)

ALGORITHM: Final = "pairwise_weight_multipliers_v1"
# Bumped by hand when results may change; a test with frozen inputs fails when they do without a bump.
IMPLEMENTATION_VERSION = 1
STEPS = (0.5, 0.25, 0.125, 0.0625)
MIN_DECREASE = 1e-12
# Pairs whose temporaries (a few float64 each) stay in a core's cache.
_BLOCK = 16_384

Loss = Callable[[FloatArray], float]


@dataclass(frozen=True, slots=True)
class Fitted:
    """Multipliers (6,) in the order of FEATURES, with the training loss at unity and at them."""

    multipliers: FloatArray
    loss_before: float
    loss_after: float


def coordinate_search(loss: Loss, *, passes_per_step: int) -> Fitted:
    """Minimise `loss` from unity, one multiplier at a time in log space, within [.25, 4].

    Of the two moves from one centre the better is kept, if it lowers the loss by more than 1e-12; a pass
    without a change ends the step.
    """
    current = [1.0] * len(FEATURES)
    before = best = loss(np.array(current))
    for step in STEPS:
        for _ in range(passes_per_step):
            changed = False
            for index in range(len(FEATURES)):
                selected = current
                for proposal in _moves(current, index, step):
                    value = loss(np.array(proposal))
                    if value < best - MIN_DECREASE:
                        best, selected = value, proposal
                changed |= selected is not current
                current = selected
            if not changed:
                break
    return Fitted(np.array(current), before, best)


def _moves(current: list[float], index: int, step: float) -> Iterator[list[float]]:
    """`current` with one multiplier a step lower, then higher; a move that a bound stops is left out."""
    low, high, center = math.log(MULTIPLIER_LOW), math.log(MULTIPLIER_HIGH), math.log(current[index])
    for direction in (-1, 1):
        moved = math.exp(max(low, min(high, center + direction * step)))
        if moved != current[index]:
            yield [*current[:index], moved, *current[index + 1 :]]


@dataclass(frozen=True, slots=True)
class PairwiseObjective:
    """The training loss as a function of multipliers; call it.

    Per request the mean over (relevant, not relevant) pairs of softplus(margin · (score of the latter − score
    of the former)), then the mean over the requests of a group, then over groups, plus
    `regularization` · Σ ln(multiplier)².

    winner, loser  (p,) rows of `scorer` of each pair, requests one after the other
    weight         (p,) share of each pair in the mean of means
    """

    scorer: WeightedScorer
    winner: npt.NDArray[np.int32]
    loser: npt.NDArray[np.int32]
    weight: FloatArray
    margin_scale: float
    regularization: float

    def __call__(self, multipliers: FloatArray) -> float:
        scores = self.scorer.scores(multipliers)
        total = 0.0
        for start in range(0, len(self.winner), _BLOCK):
            block = slice(start, start + _BLOCK)
            margins = scores.take(self.loser[block])
            margins -= scores.take(self.winner[block])
            margins *= self.margin_scale
            losses = _softplus(margins)
            # Not np.dot: the threads of a BLAS cost more than they save on a block.
            losses *= self.weight[block]
            total += float(losses.sum())
        penalty = sum(math.log(multiplier) ** 2 for multiplier in multipliers.tolist())
        return total + self.regularization * penalty


def pairwise_objective(
    scorer: WeightedScorer,
    pool: JudgedPool,
    group: IndexArray,
    *,
    margin_scale: float,
    regularization: float,
) -> PairwiseObjective:
    """The objective over a pool whose candidates are the rows of `scorer`; `group` (q,) of each request."""
    winner, loser, request = _pairs(pool)
    groups, group_index = np.unique(group, return_inverse=True)
    requests_of_group = np.bincount(group_index)
    pairs = pool.positives * pool.negatives
    share = 1.0 / (pairs * requests_of_group[group_index] * len(groups))
    return PairwiseObjective(
        scorer=scorer,
        winner=winner,
        loser=loser,
        weight=share[request],
        margin_scale=margin_scale,
        regularization=regularization,
    )


def _pairs(pool: JudgedPool) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], IndexArray]:
    """Rows of both sides of every pair, and its request."""
    winners, losers = np.flatnonzero(pool.relevant), np.flatnonzero(~pool.relevant)
    negatives = pool.negatives
    first_loser = np.concatenate([[0], np.cumsum(negatives)[:-1]])
    request_of_winner = pool.request[winners]
    repeats = negatives[request_of_winner]
    pair_start = np.cumsum(repeats) - repeats
    within = np.arange(int(repeats.sum())) - np.repeat(pair_start, repeats)
    loser = losers[np.repeat(first_loser[request_of_winner], repeats) + within]
    winner = np.repeat(winners, repeats)
    return winner.astype(np.int32), loser.astype(np.int32), np.repeat(request_of_winner, repeats)


def _softplus(values: FloatArray) -> FloatArray:
    """ln(1 + exp(v)) without overflow."""
    tail = np.abs(values)
    np.negative(tail, out=tail)
    np.exp(tail, out=tail)
    np.log1p(tail, out=tail)
    np.maximum(values, 0.0, out=values)
    values += tail
    return values
