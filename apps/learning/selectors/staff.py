"""How ranking stands, for staff: pointers with their history, what waits for a second person, how many are active.

In a staff session; row policies show what the user may see, and pages narrow it to the current workspace.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from apps.core import canonical, clock
from apps.learning.applicability import Cause, cause_against
from apps.learning.models import ActivationProposal, ProposalStatus, RankingProfile, Transition
from apps.learning.policy import GateInEffect, gate_in_effect
from apps.learning.selectors.active import scorer_in
from apps.retrieval.policy import in_force

MOST_TRANSITIONS = 200
SEARCHED_FOR = timedelta(days=14)
NEWEST_TRACES = 5000

PointerKey = tuple[UUID, str]


@dataclass(frozen=True)
class Standing:
    """All that an act on a profile is decided on.

    `history` is the pointer's, oldest first, at most 200; `proposals` are open and in their time, newest first;
    `cause` says why the profile would not apply, None where it would.
    """

    profile: RankingProfile
    history: list[Transition]
    proposals: list[ActivationProposal]
    cause: Cause | None
    gate: GateInEffect

    @property
    def active(self) -> UUID | None:
        return self.history[-1].resulting_profile_id if self.history else None

    @property
    def is_active(self) -> bool:
        return self.active == self.profile.pk

    @property
    def moved_by(self) -> Transition | None:
        return self.history[-1] if self.history else None

    @property
    def own_proposals(self) -> list[ActivationProposal]:
        return [proposal for proposal in self.proposals if proposal.profile_id == self.profile.pk]

    @property
    def former(self) -> list[UUID]:
        """Profiles to which the pointer can go back: those that were active and are not now, newest first."""
        states = [row.resulting_profile_id for row in reversed(self.history)]
        return [state for state in dict.fromkeys(states) if state is not None and state != self.active]

    @property
    def can_go_back(self) -> bool:
        return self.active is not None or bool(self.former)

    @property
    def seal(self) -> str:
        """A checksum over the state that a page shows; another one says that the page is old."""
        return canonical.checksum(
            {
                "transition": str(self.history[-1].pk) if self.history else None,
                "proposals": sorted(str(proposal.pk) for proposal in self.proposals),
                "cause": self.cause,
            }
        )


def standing_of(profile: RankingProfile) -> Standing:
    """How a profile and its pointer stand now, in three statements and those of the policies in force."""
    pointer = {"principal_id": profile.principal_id, "scope_key": profile.scope_key}
    newest = Transition.objects.filter(**pointer).select_related("actor_user", "proposal__proposed_by")
    history = list(newest.order_by("-recorded_at")[:MOST_TRANSITIONS])
    waiting = open_proposals().filter(**pointer).select_related("proposed_by")
    return Standing(
        profile=profile,
        history=history[::-1],
        proposals=list(waiting.order_by("-proposed_at", "-id")),
        cause=cause_now(profile),
        gate=gate_in_effect(profile.workspace_id),
    )


def open_proposals() -> QuerySet[ActivationProposal]:
    """Proposals that wait for a second person."""
    return ActivationProposal.objects.filter(status=ProposalStatus.OPEN, valid_until__gt=clock.now())


def cause_now(profile: RankingProfile) -> Cause | None:
    """Why a profile would not apply to a search now."""
    return cause_against(profile, scorer_in(in_force(profile.workspace_id)), at=clock.now())


def active_at(pointers: Collection[PointerKey]) -> dict[PointerKey, UUID]:
    """The active profile of each pointer (principal, scope key), in one statement; those at base are left out."""
    if not pointers:
        return {}
    owners, keys = zip(*pointers, strict=True)
    query = (
        "SELECT w.principal_id, w.scope_key, newest.resulting_profile_id "
        "FROM unnest(%s::uuid[], %s::text[]) w(principal_id, scope_key) CROSS JOIN LATERAL ("
        "SELECT resulting_profile_id FROM learning_transition t WHERE t.principal_id = w.principal_id "
        'AND t.scope_key = w.scope_key COLLATE "C" ORDER BY t.recorded_at DESC LIMIT 1) newest '
        "WHERE newest.resulting_profile_id IS NOT NULL"
    )
    with connection.cursor() as cursor:
        cursor.execute(query, [list(owners), list(keys)])
        return {(owner, key): active for owner, key, active in cursor.fetchall()}


def ever_active(profile_ids: Iterable[UUID]) -> set[UUID]:
    """Which of the profiles some pointer was ever at, rehearsals left out."""
    found = Transition.objects.filter(resulting_profile_id__in=list(profile_ids), drill_id__isnull=True)
    return set(found.values_list("resulting_profile_id", flat=True).distinct())


def active_of(principal_id: UUID) -> list[tuple[str, UUID, datetime]]:
    """Scope key, profile and since when, of every pointer of a principal that is not at base."""
    newest = (
        Transition.objects.filter(principal_id=principal_id, drill_id__isnull=True)
        .order_by("scope_key", "-recorded_at")
        .distinct("scope_key")
        .values_list("scope_key", "resulting_profile_id", "recorded_at")
    )
    return [(key, active, since) for key, active, since in newest if active is not None]


@dataclass(frozen=True, slots=True)
class Coverage:
    """Pointers that are at a profile, of the scope sets that were searched of late or have such a pointer."""

    active: int
    scope_sets: int


_COVERAGE = """
WITH pointers AS (
  SELECT DISTINCT ON (principal_id, scope_key) principal_id, scope_key, resulting_profile_id
  FROM learning_transition WHERE workspace_id = ANY (%(workspaces)s) AND drill_id IS NULL
  ORDER BY principal_id, scope_key, recorded_at DESC
), searched AS (
  SELECT principal_id, coalesce(array_to_string(scopes, ','), '*') AS scope_key FROM (
    SELECT principal_id, scopes FROM traces_trace
    WHERE workspace_id = ANY (%(workspaces)s) AND recorded_at >= %(since)s
    ORDER BY recorded_at DESC, id DESC LIMIT %(limit)s) newest
)
SELECT
  (SELECT count(*) FROM pointers WHERE resulting_profile_id IS NOT NULL),
  (SELECT count(*) FROM (
     SELECT principal_id, scope_key FROM searched
     UNION SELECT principal_id, scope_key FROM pointers WHERE resulting_profile_id IS NOT NULL) all_sets)
"""


def coverage_of(workspaces: Iterable[UUID]) -> Coverage:
    """In one statement over the newest 5,000 searches of the last 14 days, found through one index."""
    with connection.cursor() as cursor:
        cursor.execute(
            _COVERAGE,
            {"workspaces": list(workspaces), "since": clock.now() - SEARCHED_FOR, "limit": NEWEST_TRACES},
        )
        active, scope_sets = cursor.fetchone()
    return Coverage(active, scope_sets)
