"""How much a node is worth before any question is asked: weight, usefulness, age, staleness, confidence."""

import math
from dataclasses import dataclass
from datetime import datetime

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
    factors = prior_factors(weight, useful, unhelpful, confidence, pinned, stale, accessed_at, updated_at, at)
    return Prior(*factors)


def prior_factors(
    weight: float,
    useful: int,
    unhelpful: int,
    confidence: float,
    pinned: bool,
    stale: bool,
    accessed_at: datetime | None,
    updated_at: datetime,
    at: datetime,
) -> tuple[float, float, float, float, float]:
    """The members of `Prior`, for whoever needs hundreds: value, merit, age, staleness, confidence."""
    if pinned:
        return PINNED, 1.0, 1.0, 1.0, 1.0
    merit = 1 + WEIGHT * math.log(weight) + USEFUL * math.log1p(useful) - UNHELPFUL * math.log1p(unhelpful)
    merit = max(LEAST, merit)
    last = max(accessed_at, updated_at) if accessed_at else updated_at
    days = max(0.0, (at - last).total_seconds() / DAY_S)
    age = AGE_FLOOR + (1 - AGE_FLOOR) * math.exp(-days / AGE_DAYS)
    freshness = STALE if stale else 1.0
    belief = 0.5 + 0.5 * confidence
    return merit * age * freshness * belief, merit, age, freshness, belief
