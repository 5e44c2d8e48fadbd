"""Commands on the pointer to the active profile.

The law: every accepted command is one transition, also when it changes nothing, under a key that counts once; what
is refused leaves nothing. Commands of a pointer wait in line, so that of several with one expectation only the first
finds it true. What moves the pointer voids the proposals that were made for where it stood.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.core import audit, clock
from apps.core.db.locks import lock_pointer
from apps.core.db.sessions import acting_staff, current_principal
from apps.core.idempotency import Made, Once, once
from apps.core.ids import uuid7
from apps.core.problems import InvalidRequest
from apps.core.reasons import check_reason
from apps.core.text import refused_by
from apps.learning import pointer
from apps.learning.alerts import no_longer_active
from apps.learning.applicability import cause_against
from apps.learning.exceptions import NotPromotable
from apps.learning.models import Actor, RankingProfile, Transition
from apps.learning.pointer import Pointer, Step
from apps.learning.selectors.active import scorer_in
from apps.learning.selectors.profiles import has_been_active, pointer_at, profile_of, transition_shown
from apps.learning.services.approvals import Approval, approved, void_others
from apps.retrieval.policy import in_force

TOOL = "learning."


@dataclass(frozen=True, slots=True)
class Command:
    """What somebody wants: the key under which it counts once, the profile that they saw active (None: base)."""

    change_id: str
    expected_active: UUID | None
    reason: str = ""

    def payload(self, profile_id: UUID, **more: Any) -> dict[str, Any]:
        """Canonical arguments for the key."""
        expected = str(self.expected_active) if self.expected_active else None
        return {
            "profile_id": str(profile_id),
            "expected_active": expected,
            "reason": self.reason,
        } | more


@dataclass(frozen=True, slots=True)
class Decided:
    """A step that may be taken, and what it rests on."""

    step: Step
    evidence: Mapping[str, Any]
    proposal: UUID | None = None


def activate_profile(
    *, profile_id: UUID, command: Command, approval: Approval | None = None
) -> Once[dict[str, Any]]:
    """Rank requests of the profile's scope set with it, in the session of its principal or of staff for it.

    Raises UnknownProfile, StaleState, WrongBaseline, ApprovalRequired; NotPromotable where it does not apply under
    the scorer that is in force; StateConflict `idempotency_conflict`.
    """

    def decide(profile: RankingProfile, at: Pointer) -> Decided:
        step = pointer.activate(
            at,
            profile=profile.pk,
            baseline=profile.baseline_profile_id,
            expected=command.expected_active,
        )
        evidence = evidence_that_applies(profile)
        proposal = (
            approved(profile, expected=command.expected_active, approval=approval) if step.moves else None
        )
        return Decided(step, evidence, proposal)

    payload = command.payload(profile_id, **(approval.payload() if approval else {}))
    return _carry_out("activate_profile", profile_id, command, payload, decide)


def deactivate_profile(*, profile_id: UUID, command: Command) -> Once[dict[str, Any]]:
    """Return the profile's scope set to base scoring. Where nothing is active this changes nothing, and is recorded.

    Raises UnknownProfile, StaleState, InvalidRequest (another profile is expected), StateConflict
    `idempotency_conflict`.
    """
    if command.expected_active not in (None, profile_id):
        raise InvalidRequest("This is not the profile to deactivate", pointer="/expected_active")
    return _carry_out(
        "deactivate_profile",
        profile_id,
        command,
        command.payload(profile_id),
        lambda profile, at: Decided(pointer.deactivate(at, expected=command.expected_active), {}),
    )


def roll_back_profile(*, profile_id: UUID, to: UUID | None, command: Command) -> Once[dict[str, Any]]:
    """Take the scope set of a profile back to one that was active before, or (None) to base scoring.

    Raises UnknownProfile, StaleState, NeverActive; NotPromotable where what was active before no longer applies;
    StateConflict `idempotency_conflict`.
    """

    def decide(profile: RankingProfile, at: Pointer) -> Decided:
        seen = to is not None and has_been_active(profile.scope_key, to)
        step = pointer.roll_back(at, to=to, has_been_active=seen, expected=command.expected_active)
        return Decided(step, evidence_that_applies(profile_of(to)) if to is not None else {})

    payload = command.payload(profile_id, to=str(to) if to else None)
    return _carry_out("roll_back_profile", profile_id, command, payload, decide)


def expire_profile(*, profile_id: UUID) -> bool:
    """Record the end of an active profile's term; whether there was something to end.

    In the session of its principal, by the platform.
    """
    profile = profile_of(profile_id)
    lock_pointer(profile.principal_id, profile.scope_key)
    at = pointer_at(profile.scope_key)
    step = pointer.expire(at, profile=profile.pk)
    if step is None or profile.effective_until is None or profile.effective_until > clock.now():
        return False
    ended = {"effective_until": clock.iso(profile.effective_until)}
    append_transition(profile, at, Decided(step, ended), id=uuid7(), actor=Actor.PLATFORM)
    return True


def _carry_out(
    verb: str,
    profile_id: UUID,
    command: Command,
    payload: Mapping[str, Any],
    decide: Callable[[RankingProfile, Pointer], Decided],
) -> Once[dict[str, Any]]:
    """Decide under the pointer's lock and record; a known key gives its transition again."""
    if acting_staff() is not None:
        check_reason(command.reason)

    def run(transition_id: UUID) -> Made[dict[str, Any]]:
        profile = profile_of(profile_id)
        lock_pointer(profile.principal_id, profile.scope_key)
        at = pointer_at(profile.scope_key)
        decided = decide(profile, at)
        row = append_transition(
            profile,
            at,
            decided,
            id=transition_id,
            actor=Actor.STAFF if acting_staff() else Actor.PRINCIPAL,
            change_id=command.change_id,
            reason=command.reason,
        )
        _audit(verb, profile, row)
        return Made(transition_shown(row))

    return once(tool=TOOL + verb, key=command.change_id, payload=dict(payload), run=run, again=_again)


def _again(transition_id: UUID) -> dict[str, Any]:
    owner = current_principal().principal_id
    return transition_shown(Transition.objects.get(principal_id=owner, pk=transition_id))


def append_transition(
    profile: RankingProfile,
    at: Pointer,
    decided: Decided,
    *,
    id: UUID,
    actor: Actor,
    change_id: str | None = None,
    reason: str = "",
    scope_key: str | None = None,
    drill_id: UUID | None = None,
) -> Transition:
    """Write a transition of the pointer that stands `at`, under its lock. `scope_key`: another than the profile's."""
    staff, step = acting_staff(), decided.step
    row = Transition.objects.create(
        id=id,
        workspace_id=profile.workspace_id,
        principal_id=profile.principal_id,
        scopes=profile.scopes,
        scope_key=scope_key or profile.scope_key,
        recorded_at=at.moment(clock.now()),
        kind=step.kind.value,
        profile_id=profile.pk,
        expected_profile_id=step.expected,
        resulting_profile_id=step.resulting,
        change_id=change_id,
        actor=actor,
        actor_user_id=staff.user_id if staff else None,
        proposal_id=decided.proposal,
        drill_id=drill_id,
        # Of an application a text that may not be kept is left out; of staff it was refused before.
        reason="" if refused_by(reason) is not None else reason,
        evidence=dict(decided.evidence),
    )
    if step.moves and drill_id is None:
        void_others(profile, but=decided.proposal)
        if step.expected is not None:
            no_longer_active(profile.workspace_id, step.expected)
    return row


def evidence_that_applies(profile: RankingProfile) -> dict[str, Any]:
    """What a profile rests on, as evidence. Raises NotPromotable where it does not apply here and now."""
    scorer = scorer_in(in_force(profile.workspace_id))
    cause = cause_against(profile, scorer, at=clock.now())
    if cause is not None:
        raise NotPromotable(reason=cause)
    return {
        "manifest_sha256": profile.manifest_sha256,
        "scorer_contract": scorer.contract,
        "scoring_policy_sha256": scorer.policy_sha256,
    }


def _audit(verb: str, profile: RankingProfile, row: Transition) -> None:
    """What staff do is in the audit log, too; a principal's own commands are their transitions."""
    if acting_staff() is None:
        return
    ids = (row.expected_profile_id, row.resulting_profile_id)
    before, after = ({"active": str(state) if state else None} for state in ids)
    audit.record(
        f"learning.{verb}",
        "learning.rankingprofile",
        profile.pk,
        reason=row.reason,
        before=before,
        after=after,
        details={"transition": str(row.pk), "proposal": str(row.proposal_id) if row.proposal_id else None},
    )
