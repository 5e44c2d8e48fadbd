"""Stored evidence of learning. Results are append-only; what asked for them carries their status."""

from .evaluations import EvaluatedQuery, Evaluation, EvaluationResult
from .holdouts import Holdout, HoldoutPair, HoldoutResult
from .query_sets import JudgedQuery, QuerySet
from .runs import RunStatus

__all__ = [
    "EvaluatedQuery",
    "Evaluation",
    "EvaluationResult",
    "Holdout",
    "HoldoutPair",
    "HoldoutResult",
    "JudgedQuery",
    "QuerySet",
    "RunStatus",
]
