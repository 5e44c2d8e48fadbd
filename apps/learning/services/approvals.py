"""Four eyes: one person proposes an activation, another approves it, and it counts for just that.

The law: a proposal is bound to the profile and to the state of the pointer that its author saw. It ends with its
time, with any move of the pointer, and with its one use; the person who made it cannot use it.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from apps.core import canonical, clock
from apps.core.db.sessions import acting_staff
from apps.learning.exceptions import ApprovalRequired
from apps.learning.models import ActivationProposal, ProposalStatus, RankingProfile
from apps.learning.policy import gate_in_effect

VALID_FOR = timedelta(days=3)


@dataclass(frozen=True, slots=True)
class Approval:
    """What an approver hands in: the proposal, and the version of it that they saw."""

    proposal_id: UUID
    version: str

    def payload(self) -> dict[str, Any]:
        return {"proposal_id": str(self.proposal_id), "version": self.version}


def proposal_version(profile: RankingProfile, expected: UUID | None) -> str:
    """What is proposed, as one checksum: the profile with its evidence, and the state that it would follow."""
    return canonical.checksum(
        {
            "profile_id": str(profile.pk),
            "manifest_sha256": profile.manifest_sha256,
            "expected_active": str(expected) if expected else None,
        }
    )


def approved(profile: RankingProfile, *, expected: UUID | None, approval: Approval | None) -> UUID | None:
    """Use up the approval of an activation; the id of its proposal, None where the policy asks for none.

    Under the pointer's lock. Raises ApprovalRequired with the reason.
    """
    if approval is None:
        if _asks_for_four_eyes(profile.workspace_id):
            raise ApprovalRequired(reason="no_proposal")
        return None
    staff = acting_staff()
    found = ActivationProposal.objects.select_for_update().filter(
        principal_id=profile.principal_id, pk=approval.proposal_id
    )
    proposal = found.first()
    if staff is None or proposal is None:
        raise ApprovalRequired(reason="no_proposal")
    fault = _fault(proposal, profile, expected, approval.version)
    if fault is None and proposal.proposed_by_id == staff.user_id:
        fault = "same_person"
    if fault is not None:
        raise ApprovalRequired(reason=fault)
    found.update(status=ProposalStatus.APPROVED, decided_by=staff.user_id, decided_at=clock.now())
    return proposal.pk


def void_others(profile: RankingProfile, *, but: UUID | None) -> None:
    """Void what was proposed for where the pointer stood."""
    open_ones = ActivationProposal.objects.filter(
        principal_id=profile.principal_id, scope_key=profile.scope_key, status=ProposalStatus.OPEN
    )
    if but is not None:
        open_ones = open_ones.exclude(pk=but)
    open_ones.update(status=ProposalStatus.VOIDED, decided_at=clock.now())


def _asks_for_four_eyes(workspace_id: UUID) -> bool:
    policy = gate_in_effect(workspace_id).document
    return policy.four_eyes_in_admin if acting_staff() else policy.four_eyes_in_api


def _fault(
    proposal: ActivationProposal, profile: RankingProfile, expected: UUID | None, version: str
) -> str | None:
    """Why a proposal does not carry this activation; None where it does."""
    if proposal.status != ProposalStatus.OPEN:
        return str(proposal.status)
    if proposal.valid_until <= clock.now():
        return "lapsed"
    here = proposal_version(profile, expected)
    return None if proposal.version == version == here else "other_version"
