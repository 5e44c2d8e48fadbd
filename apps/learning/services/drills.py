"""The rollback drill: that a profile goes active, applies, and goes back, shown before it is needed.

It runs the commands of the real thing on a pointer that no request can reach, in one transaction with its evidence.
The real pointer is read before and after, and must be where it was.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from apps.core import audit, clock
from apps.core.db.locks import lock_pointer
from apps.core.db.sessions import acting_staff
from apps.core.ids import uuid7
from apps.core.problems import Problem
from apps.core.reasons import check_reason
from apps.learning import pointer
from apps.learning.models import Actor, RankingProfile, RollbackDrill
from apps.learning.pointer import Pointer, Step, TransitionKind
from apps.learning.selectors.active import resolve_key
from apps.learning.selectors.profiles import pointer_at, profile_of
from apps.learning.services.pointers import Decided, append_transition, evidence_that_applies
from apps.retrieval.policy import in_force
from apps.retrieval.receipts.document import ProfileUse

SCRATCH = "~drill:"
"""No slug begins so, so that no request resolves such a pointer."""


@dataclass(slots=True)
class _Rehearsal:
    """A drill under way: its scratch pointer, and the steps with what each was seen to do."""

    profile: RankingProfile
    id: UUID = field(default_factory=uuid7)
    steps: list[dict[str, Any]] = field(default_factory=list)

    @property
    def scope_key(self) -> str:
        return f"{SCRATCH}{self.id}"

    @property
    def passed(self) -> bool:
        return all(step["as_expected"] for step in self.steps)

    def at(self) -> Pointer:
        return pointer_at(self.scope_key)

    def take(self, step: Step, evidence: dict[str, Any] | None = None) -> None:
        """Record a step and look at what a request would then be ranked with."""
        staff = acting_staff()
        row = append_transition(
            self.profile,
            self.at(),
            Decided(step, evidence or {}),
            id=uuid7(),
            actor=Actor.STAFF if staff else Actor.PRINCIPAL,
            scope_key=self.scope_key,
            drill_id=self.id,
        )
        seen = resolve_key(self.scope_key, in_force(self.profile.workspace_id))
        self.note(step.kind.value, step.resulting, seen.use, transition=row.pk, multipliers=seen.multipliers)

    def note(
        self,
        name: str,
        wanted: UUID | None,
        seen: ProfileUse,
        *,
        transition: UUID,
        multipliers: Mapping[str, float] | None,
    ) -> None:
        status = "applied" if wanted else "none"
        as_expected = (seen.id, seen.status) == (wanted, status)
        if wanted == self.profile.pk:
            as_expected = as_expected and list((multipliers or {}).values()) == self.profile.multipliers
        self.steps.append(
            {
                "step": name,
                "transition_id": str(transition),
                "expected": {"active": _text(wanted), "status": status},
                "seen": {"active": _text(seen.id), "status": seen.status, "reason": seen.reason},
                "as_expected": as_expected,
            }
        )


def run_rollback_drill(*, profile_id: UUID, reason: str) -> RollbackDrill:
    """Rehearse activation and rollback of a profile; in the session of its principal or of staff for it.

    A refusal on the way (the profile does not apply) is evidence, too: the drill is stored as not passed. Raises
    UnknownProfile, InvalidRequest (the reason).
    """
    check_reason(reason)
    profile = profile_of(profile_id)
    lock_pointer(profile.principal_id, profile.scope_key)
    before = pointer_at(profile.scope_key)
    rehearsal, refused = _Rehearsal(profile), None
    try:
        _rehearse(rehearsal)
    except Problem as problem:
        refused = {"code": problem.shown_code, **problem.more}
    untouched = pointer_at(profile.scope_key) == before
    return _store(rehearsal, reason, untouched=untouched, refused=refused)


def _rehearse(rehearsal: _Rehearsal) -> None:
    """Start where the profile's baseline is active, activate, go back to the start, then to base."""
    profile = rehearsal.profile
    start = profile.baseline_profile_id
    evidence = evidence_that_applies(profile)
    if start is not None:
        rehearsal.take(Step(TransitionKind.ACTIVATE, None, start), {"start": True})
    rehearsal.take(
        pointer.activate(rehearsal.at(), profile=profile.pk, baseline=start, expected=start), evidence
    )
    rehearsal.take(
        pointer.roll_back(rehearsal.at(), to=start, has_been_active=start is not None, expected=profile.pk)
    )
    rehearsal.take(pointer.roll_back(rehearsal.at(), to=None, has_been_active=True, expected=start))


def _store(
    rehearsal: _Rehearsal, reason: str, *, untouched: bool, refused: dict[str, Any] | None
) -> RollbackDrill:
    staff, profile = acting_staff(), rehearsal.profile
    drill = RollbackDrill.objects.create(
        id=rehearsal.id,
        workspace_id=profile.workspace_id,
        principal_id=profile.principal_id,
        profile_id=profile.pk,
        drilled_at=clock.now(),
        actor=Actor.STAFF if staff else Actor.PRINCIPAL,
        actor_user_id=staff.user_id if staff else None,
        reason=reason,
        passed=untouched and refused is None and rehearsal.passed,
        evidence={"steps": rehearsal.steps, "real_pointer_untouched": untouched, "refused": refused},
    )
    if staff is not None:
        audit.record(
            "learning.rollback_drill",
            "learning.rankingprofile",
            profile.pk,
            reason=reason,
            details={"drill": str(drill.pk), "passed": drill.passed},
        )
    return drill


def _text(value: UUID | None) -> str | None:
    return str(value) if value else None
