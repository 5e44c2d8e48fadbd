"""Whether a profile means here and now what it was measured to mean. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

Cause = Literal["scorer_contract", "formula", "scoring_policy", "expired"]


class Bound(Protocol):
    """What of a profile binds its multipliers to a scorer."""

    contract: str
    formula: str
    policy_sha256: str
    effective_until: datetime | None


@dataclass(frozen=True, slots=True)
class Scorer:
    """What scores now: contract version, and formula and hash of the scoring policy in force."""

    contract: str
    formula: str
    policy_sha256: str


def cause_against(profile: Bound, scorer: Scorer, *, at: datetime) -> Cause | None:
    """Why a profile does not apply under this scorer; None where it does."""
    expired = profile.effective_until is not None and profile.effective_until <= at
    return first_cause(
        contract=profile.contract,
        formula=profile.formula,
        policy_sha256=profile.policy_sha256,
        expired=expired,
        scorer=scorer,
    )


def first_cause(
    *, contract: str, formula: str, policy_sha256: str, expired: bool, scorer: Scorer
) -> Cause | None:
    """The same over its parts; the first cause of several, in this order."""
    if contract != scorer.contract:
        return "scorer_contract"
    if formula != scorer.formula:
        return "formula"
    if policy_sha256 != scorer.policy_sha256:
        return "scoring_policy"
    return "expired" if expired else None
