"""Six features in [0, 1] for each candidate, computed from the pool as a whole.

Source of the set and of the weighted formula: PRME's composite scoring; min-max over the pool and the default
weights were chosen on the judged collections of `benchmarks/quality.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from apps.graph.prior import DAY_S, PINNED, days_since, priors
from apps.retrieval.candidates import Candidate
from apps.retrieval.policy import FEATURES
from apps.retrieval.schemas import Features

Column = NDArray[np.float64]
Bounds = tuple[float, float]
"""Least and greatest value of a scale."""

BY_HOPS = (1.0, 0.7, 0.4)
"""The graph feature of what the query names itself, and of what lies one and two hops from it or a best hit."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The bounds of the values that min-max stretches; None where no row has a value."""

    semantic: Bounds | None
    lexical: Bounds | None


def scale_of(pool: Sequence[Candidate]) -> Scale:
    """The bounds over the rows that were searched for.

    What the graph or a pin brought in is measured on the same scale and cut to it, so that such rows move no
    other's score.
    """
    searched = [c for c in pool if c.searched] or pool
    return Scale(_bounds([c.cosine for c in searched]), _bounds([c.bm25 for c in searched]))


def features(
    pool: Sequence[Candidate], *, at: datetime, recency_per_day: float, scale: Scale | None = None
) -> list[Features]:
    """The features of each candidate, in the order of the pool; on the scale of another pool if given."""
    if not pool:
        return []
    known = scale or scale_of(pool)
    nodes = [c.node for c in pool]
    confidence = np.array([n.confidence for n in nodes])
    prior = priors(
        merits=[(n.weight, n.useful_count, n.unhelpful_count) for n in nodes],
        confidence=confidence,
        pinned=[n.pinned for n in nodes],
        stale=[n.stale_at is not None for n in nodes],
        days=[days_since(n.accessed_at, n.updated_at, at) for n in nodes],
    )
    columns = {
        "semantic": min_max([c.cosine for c in pool], known.semantic),
        "lexical": min_max([c.bm25 for c in pool], known.lexical),
        "graph": np.array([0.0 if c.hops is None else BY_HOPS[c.hops] for c in pool]),
        "recency": _recency([n.event_at or n.updated_at for n in nodes], at, recency_per_day),
        "salience": np.minimum(1.0, prior / PINNED),
        "confidence": confidence,
    }
    matrix = np.column_stack([columns[name] for name in FEATURES])
    return [Features(*row) for row in matrix.tolist()]


def _bounds(values: Sequence[float | None]) -> Bounds | None:
    present = [value for value in values if value is not None]
    return (min(present), max(present)) if present else None


def min_max(values: Sequence[float | None], bounds: Bounds | None = None) -> Column:
    """Values to [0, 1] between bounds, by default those of the values that are there: all equal → 1, absent → 0."""
    column = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    low, high = bounds or _bounds(values) or (0.0, 0.0)
    if high == low:
        return np.where(column >= low, 1.0, 0.0)
    return np.clip(np.where(np.isnan(column), 0.0, (column - low) / (high - low)), 0.0, 1.0)


def _recency(moments: Sequence[datetime], at: datetime, per_day: float) -> Column:
    days = np.array([max(0.0, (at - moment).total_seconds() / DAY_S) for moment in moments])
    return np.exp(-per_day * days)
