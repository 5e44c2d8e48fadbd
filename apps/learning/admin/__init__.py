"""Staff pages of learning: ranking profiles and their pointers."""

from .profiles import RankingProfileAdmin

__all__ = ["RankingProfileAdmin"]
