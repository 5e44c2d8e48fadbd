"""How much a node is worth before any question is asked: weight, usefulness, age, staleness, confidence."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

import numpy as np
import numpy.typing as npt

PINNED = 1.5
LEAST = 0.5
WEIGHT, USEFUL, UNHELPFUL = 0.15, 0.18, 0.10
AGE_FLOOR, AGE_DAYS = 0.6, 90.0
STALE = 0.7
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Prior:
    """The prior and its factors, each as it was applied."""

    value: float
    merit: float = 1.0
    age: float = 1.0
    stale: float = 1.0
    confidence: float = 1.0


def prior(
    *,
    weight: float,
    useful: int,
    unhelpful: int,
    confidence: float,
    pinned: bool,
    stale: bool,
    accessed_at: datetime | None,
    updated_at: datetime,
    at: datetime,
) -> Prior:
    """The prior at a time, 0 < value ≤ 1.5 for a row of the least merit on; a pinned row has 1.5 flat."""
    if pinned:
        return Prior(PINNED)
    merit, age, belief = (
        _merit(weight, useful, unhelpful),
        _age(days_since(accessed_at, updated_at, at)),
        0.5 + 0.5 * confidence,
    )
    freshness = STALE if stale else 1.0
    return Prior(merit * age * freshness * belief, merit, age, freshness, belief)


def priors(
    *,
    merits: Iterable[tuple[float, int, int]],
    confidence: npt.ArrayLike,
    pinned: Sequence[bool],
    stale: Sequence[bool],
    days: Sequence[float],
) -> npt.NDArray[np.float64]:
    """The values of n priors (n,), each the double that `prior` gives.

    Args:
        merits: (weight, useful, unhelpful) of each.
        days: since each was used or changed last, as `days_since` gives it.
    """
    # Logarithm and exponential are those of the C library, as above: NumPy's differ from them in the last bit.
    merit = np.array([_merit(*each) for each in merits], dtype=np.float64)
    age = np.array([_age(each) for each in days], dtype=np.float64)
    freshness = np.where(np.asarray(stale, dtype=bool), STALE, 1.0)
    belief = 0.5 + 0.5 * np.asarray(confidence, dtype=np.float64)
    return np.where(np.asarray(pinned, dtype=bool), PINNED, merit * age * freshness * belief)


def days_since(accessed_at: datetime | None, updated_at: datetime, at: datetime) -> float:
    """Days since the last use or change, none before it."""
    last = max(accessed_at, updated_at) if accessed_at else updated_at
    return max(0.0, (at - last).total_seconds() / DAY_S)


@lru_cache(maxsize=4096)
def _merit(weight: float, useful: int, unhelpful: int) -> float:
    merit = 1 + WEIGHT * math.log(weight) + USEFUL * math.log1p(useful) - UNHELPFUL * math.log1p(unhelpful)
    return max(LEAST, merit)


def _age(days: float) -> float:
    return AGE_FLOOR + (1 - AGE_FLOOR) * math.exp(-days / AGE_DAYS)
