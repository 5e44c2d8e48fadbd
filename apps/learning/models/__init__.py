"""What learning keeps."""

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

__all__ = [
    "ActivationProposal",
    "Actor",
    "ProposalStatus",
    "RankingProfile",
    "Recheck",
    "RollbackDrill",
    "Transition",
    "Verdict",
]
