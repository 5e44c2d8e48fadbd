"""Staff pages of learning: evaluations, holdouts, query sets, ranking profiles and their pointers."""

from .evaluations import EvaluationAdmin
from .facts import ranking_facts
from .holdouts import HoldoutAdmin
from .profiles import RankingProfileAdmin
from .query_sets import QuerySetAdmin

__all__ = ["EvaluationAdmin", "HoldoutAdmin", "QuerySetAdmin", "RankingProfileAdmin", "ranking_facts"]
