"""What staff with `manage_profiles` do to profiles of others: propose, approve, withdraw, deactivate, roll back.

Each is the principal's own service under that principal's identity, with the user as actor and an audit entry.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from apps.core import audit, clock
from apps.core.db.locks import lock_pointer
from apps.core.db.sessions import GrantMissing, act_for, current_staff
from apps.core.problems import Forbidden
from apps.core.reasons import check_reason
from apps.learning.exceptions import StaleState, UnknownProfile, UnknownProposal
from apps.learning.models import ActivationProposal, ProposalStatus, RankingProfile, RollbackDrill
from apps.learning.selectors.preview import ActivationPreview, preview_move
from apps.learning.selectors.profiles import pointer_at, profile_of
from apps.learning.services.approvals import VALID_FOR, Approval, proposal_version
from apps.learning.services.drills import run_rollback_drill
from apps.learning.services.pointers import (
    Command,
    activate_profile,
    deactivate_profile,
    evidence_that_applies,
    roll_back_profile,
)

GRANT = "manage_profiles"
PROFILE = "learning.rankingprofile"


def propose_activation(*, profile_id: UUID, expected_active: UUID | None, reason: str) -> ActivationProposal:
    """Propose to activate a profile, for somebody else to approve within three days.

    Raises UnknownProfile, Forbidden, StaleState, NotPromotable, InvalidRequest (the reason).
    """
    check_reason(reason)
    staff = current_staff()
    with _acting_for_owner_of(profile_id):
        profile = profile_of(profile_id)
        lock_pointer(profile.principal_id, profile.scope_key)
        active = pointer_at(profile.scope_key).active
        if active != expected_active:
            raise StaleState(active=str(active) if active else None)
        evidence_that_applies(profile)
        now = clock.now()
        proposal = ActivationProposal.objects.create(
            workspace_id=profile.workspace_id,
            principal_id=profile.principal_id,
            profile=profile,
            scope_key=profile.scope_key,
            expected_profile_id=expected_active,
            version=proposal_version(profile, expected_active),
            proposed_by_id=staff.user_id,
            proposed_at=now,
            valid_until=now + VALID_FOR,
            reason=reason,
        )
        _audit("propose_activation", proposal, reason)
    return proposal


def approve_activation(*, proposal_id: UUID, version: str, change_id: str, reason: str) -> dict[str, Any]:
    """Approve what another person proposed and activate it; the transition. `version` is the proposal's as seen.

    Raises UnknownProposal, Forbidden, ApprovalRequired (the same person, another version, lapsed, voided, used),
    StaleState, WrongBaseline, NotPromotable.
    """
    proposal = _proposal_seen(proposal_id)
    with _acting_for_owner_of(proposal.profile_id):
        command = Command(change_id, proposal.expected_profile_id, reason)
        approval = Approval(proposal_id, version)
        return activate_profile(profile_id=proposal.profile_id, command=command, approval=approval).answer


def withdraw_proposal(*, proposal_id: UUID, reason: str) -> ActivationProposal:
    """Close an open proposal unused; by anybody who could have made it. Raises UnknownProposal, Forbidden."""
    check_reason(reason)
    staff, proposal = current_staff(), _proposal_seen(proposal_id)
    with _acting_for_owner_of(proposal.profile_id):
        still_open = ActivationProposal.objects.filter(pk=proposal_id, status=ProposalStatus.OPEN)
        closed = still_open.update(
            status=ProposalStatus.WITHDRAWN, decided_by=staff.user_id, decided_at=clock.now()
        )
        if closed:
            _audit("withdraw_proposal", proposal, reason)
        return ActivationProposal.objects.get(pk=proposal_id)


def activate_for(*, profile_id: UUID, command: Command) -> dict[str, Any]:
    """Activate without a second person, where the gate policy allows that to staff. Raises as `activate_profile`."""
    with _acting_for_owner_of(profile_id):
        return activate_profile(profile_id=profile_id, command=command).answer


def deactivate_for(*, profile_id: UUID, command: Command) -> dict[str, Any]:
    """Return a principal's scope set to base scoring. Raises as `deactivate_profile`, and Forbidden."""
    with _acting_for_owner_of(profile_id):
        return deactivate_profile(profile_id=profile_id, command=command).answer


def roll_back_for(*, profile_id: UUID, to: UUID | None, command: Command) -> dict[str, Any]:
    """Take a principal's scope set back to what was active before. Raises as `roll_back_profile`, and Forbidden."""
    with _acting_for_owner_of(profile_id):
        return roll_back_profile(profile_id=profile_id, to=to, command=command).answer


def drill_for(*, profile_id: UUID, reason: str) -> RollbackDrill:
    """Rehearse activation and rollback of a principal's profile. Raises as `run_rollback_drill`, and Forbidden."""
    with _acting_for_owner_of(profile_id):
        return run_rollback_drill(profile_id=profile_id, reason=reason)


def preview_for(*, profile_id: UUID) -> ActivationPreview:
    """What activating a principal's profile would do; nothing is written. Raises UnknownProfile, Forbidden."""
    return preview_move_for(profile_id=profile_id, to=profile_id)


def preview_move_for(*, profile_id: UUID, to: UUID | None) -> ActivationPreview:
    """The same for taking the profile's scope set to another profile, or (None) to base scoring."""
    with _acting_for_owner_of(profile_id):
        return preview_move(profile_id, to=to)


@contextmanager
def _acting_for_owner_of(profile_id: UUID) -> Iterator[None]:
    """As the principal of a profile that the staff session sees. Raises UnknownProfile, Forbidden."""
    current_staff()
    owner = RankingProfile.objects.filter(pk=profile_id).values_list("principal_id", flat=True).first()
    if owner is None:
        raise UnknownProfile
    try:
        with act_for(owner, GRANT):
            yield
    except GrantMissing:
        raise Forbidden from None


def _proposal_seen(proposal_id: UUID) -> ActivationProposal:
    current_staff()
    found = ActivationProposal.objects.filter(pk=proposal_id).first()
    if found is None:
        raise UnknownProposal
    return found


def _audit(verb: str, proposal: ActivationProposal, reason: str) -> None:
    expected = proposal.expected_profile_id
    audit.record(
        f"learning.{verb}",
        PROFILE,
        proposal.profile_id,
        reason=reason,
        details={
            "proposal": str(proposal.pk),
            "version": proposal.version,
            "expected_active": str(expected) if expected else None,
        },
    )
