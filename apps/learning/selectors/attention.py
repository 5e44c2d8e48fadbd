"""Active profiles that need a human, for staff: those that do not apply, and those that do worse by now."""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from apps.core import clock
from apps.core.db.sessions import current_staff
from apps.learning.alerts import INAPPLICABLE, REGRESSED
from apps.learning.applicability import Cause, Scorer, cause_against
from apps.learning.models import RankingProfile, Recheck, Transition, Verdict
from apps.learning.selectors.active import scorer_in
from apps.retrieval.policy import in_force

MOST = 200


@dataclass(frozen=True, slots=True)
class Needing:
    """An active profile and why somebody should look at it. `cause` says why it does not apply."""

    profile: RankingProfile
    reasons: tuple[str, ...]
    cause: Cause | None
    recheck: Recheck | None


def profiles_needing_a_human() -> list[Needing]:
    """Of the workspaces that the staff session sees; at most 200 active profiles are looked at, newest moves first."""
    current_staff()
    found = list(_active())
    newest = _newest_rechecks([profile.pk for profile in found])
    scorers = {workspace: scorer_in(in_force(workspace)) for workspace in {one.workspace_id for one in found}}
    judged = (_needing(one, scorers[one.workspace_id], newest.get(one.pk)) for one in found)
    return [one for one in judged if one.reasons]


def _active() -> Iterator[RankingProfile]:
    moved = (
        Transition.objects.filter(drill_id__isnull=True)
        .order_by("principal_id", "scope_key", "-recorded_at")
        .distinct("principal_id", "scope_key")
        .values_list("resulting_profile_id", "recorded_at")
    )
    latest = sorted(((at, active) for active, at in moved if active), reverse=True)[:MOST]
    profiles = RankingProfile.objects.in_bulk([active for _, active in latest])
    return (profiles[active] for _, active in latest)


def _newest_rechecks(profile_ids: list[UUID]) -> dict[UUID, Recheck]:
    rows = (
        Recheck.objects.filter(profile_id__in=profile_ids)
        .order_by("profile_id", "-checked_at")
        .distinct("profile_id")
    )
    return {row.profile_id: row for row in rows}


def _needing(profile: RankingProfile, scorer: Scorer, recheck: Recheck | None) -> Needing:
    cause = cause_against(profile, scorer, at=clock.now())
    regressed = recheck is not None and recheck.verdict == Verdict.REGRESSED
    found = ((INAPPLICABLE, cause is not None), (REGRESSED, regressed))
    return Needing(profile, tuple(reason for reason, holds in found if holds), cause, recheck)
