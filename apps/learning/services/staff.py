"""What staff with `manage_profiles` do for a principal beside its pointer: evaluate, hold out, make a profile, look
whether evidence still reproduces.

Each is the principal's own service under that principal's identity, with the user as actor and an audit entry.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from uuid import UUID

from apps.core.db.sessions import GrantMissing, act_for, current_staff
from apps.core.problems import Forbidden, NotFound, StateConflict
from apps.learning.evidence import evidence_for
from apps.learning.exceptions import NotPromotable, UnknownProfile
from apps.learning.models import RankingProfile

GRANT = "manage_profiles"
PROFILE = "learning.rankingprofile"


class Reproduction(StrEnum):
    """What computing the evidence of a profile again has come to."""

    HOLDS = "holds"
    BELOW_GATE = "below_gate"
    DIFFERS = "differs"
    GONE = "gone"


def reproduction_for(*, profile_id: UUID) -> Reproduction:
    """Compute both decisions of a profile again from what is stored now; nothing is written.

    Raises UnknownProfile, Forbidden.
    """
    current_staff()
    found = RankingProfile.objects.filter(pk=profile_id)
    row = found.values_list("principal_id", "evaluation_id", "holdout_id").first()
    if row is None:
        raise UnknownProfile
    owner, evaluation_id, holdout_id = row
    with acting_for(owner):
        try:
            evidence_for(evaluation_id, holdout_id)
        except NotFound:
            return Reproduction.GONE
        except NotPromotable:
            return Reproduction.BELOW_GATE
        except StateConflict:
            return Reproduction.DIFFERS
    return Reproduction.HOLDS


@contextmanager
def acting_for(principal_id: UUID) -> Iterator[None]:
    """As the principal, with the user as actor. Raises Forbidden without the grant on its workspace."""
    try:
        with act_for(principal_id, GRANT):
            yield
    except GrantMissing:
        raise Forbidden from None
