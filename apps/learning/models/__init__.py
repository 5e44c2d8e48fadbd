"""Stored evidence of learning, and the profiles made of it. Results are append-only; what asked for them carries
their status.
"""

from .evaluations import EvaluatedQuery, Evaluation, EvaluationResult
from .holdouts import Holdout, HoldoutPair, HoldoutResult
from .profiles import (
    ActivationProposal,
    Actor,
    ProposalStatus,
    RankingProfile,
    Recheck,
    RollbackDrill,
    Transition,
    Verdict,
)
from .query_sets import JudgedQuery, QuerySet
from .runs import RunStatus

__all__ = [
    "ActivationProposal",
    "Actor",
    "EvaluatedQuery",
    "Evaluation",
    "EvaluationResult",
    "Holdout",
    "HoldoutPair",
    "HoldoutResult",
    "JudgedQuery",
    "ProposalStatus",
    "QuerySet",
    "RankingProfile",
    "Recheck",
    "RollbackDrill",
    "RunStatus",
    "Transition",
    "Verdict",
]
