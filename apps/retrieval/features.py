"""Six features in [0, 1] for each candidate, computed from the pool as a whole.

Source of the set and of the weighted formula: PRME's composite scoring; min-max over the pool and the default
weights were chosen on the judged collections of `benchmarks/quality.py`.
"""

from collections.abc import Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from apps.graph.prior import DAY_S, PINNED, prior_factors
from apps.retrieval.candidates import Attributes, Candidate
from apps.retrieval.policy import FEATURES
from apps.retrieval.schemas import Features

Column = NDArray[np.float64]


def features(pool: Sequence[Candidate], *, at: datetime, recency_per_day: float) -> list[Features]:
    """The features of each candidate, in the order of the pool."""
    if not pool:
        return []
    columns = {
        "semantic": min_max([c.cosine for c in pool]),
        "lexical": min_max([c.bm25 for c in pool]),
        "graph": np.zeros(len(pool)),
        "recency": _recency(pool, at, recency_per_day),
        "salience": np.minimum(1.0, np.array([_prior(c.node, at) for c in pool]) / PINNED),
        "confidence": np.array([c.node.confidence for c in pool]),
    }
    matrix = np.column_stack([columns[name] for name in FEATURES])
    return [Features(*row) for row in matrix.tolist()]


def min_max(values: Sequence[float | None]) -> Column:
    """Values to [0, 1] over those that are there: all equal → 1, absent → 0."""
    column = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    present = ~np.isnan(column)
    if not present.any():
        return np.zeros(len(column))
    low, high = column[present].min(), column[present].max()
    scaled = np.ones(len(column)) if high == low else (column - low) / (high - low)
    return np.where(present, scaled, 0.0)


def _recency(pool: Sequence[Candidate], at: datetime, per_day: float) -> Column:
    moments = [(c.node.event_at or c.node.updated_at) for c in pool]
    days = np.array([max(0.0, (at - moment).total_seconds() / DAY_S) for moment in moments])
    return np.exp(-per_day * days)


def _prior(node: Attributes, at: datetime) -> float:
    return prior_factors(
        node.weight,
        node.useful_count,
        node.unhelpful_count,
        node.confidence,
        node.pinned,
        node.stale_at is not None,
        node.accessed_at,
        node.updated_at,
        at,
    )[0]
