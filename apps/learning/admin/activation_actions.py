"""How a profile goes active: proposed and approved by two persons, or by one where the gate policy allows that."""

from typing import Any

from django.http import Http404, HttpRequest
from django.utils.html import format_html

from apps.core import ui
from apps.core.admin import Done, Preview
from apps.learning.admin.pointer_actions import (
    PointerAction,
    command_of,
    effect,
    move_facts,
    of_what,
    state_of,
)
from apps.learning.admin.profile_parts import evidence_plot
from apps.learning.admin.words import APPROVALS, CAUSES, in_words, person_of, short
from apps.learning.models import ActivationProposal, ProposalStatus
from apps.learning.selectors.staff import Standing, standing_of
from apps.learning.services import proposals


def activation_refusal(standing: Standing) -> str:
    """Why the profile cannot go active from where the pointer stands."""
    if standing.is_active:
        return "It is active already."
    if standing.cause:
        return f"It would not apply: {CAUSES[standing.cause]}."
    if standing.active != standing.profile.baseline_profile_id:
        baseline = short(standing.profile.baseline_profile_id)
        return f"It improves upon {baseline}, and {short(standing.active)} is active."
    return ""


class Activation(PointerAction):
    """What proposing, approving and activating have in common: the same effect is shown before each."""

    verb = "Activates"

    def preview_of(self, standing: Standing) -> Preview:
        profile = standing.profile
        rate, orders = effect(profile, profile.pk)
        summary = f"{self.verb} {short(profile.pk)} for {of_what(standing)}: {rate}."
        gate = standing.gate.document
        plot = evidence_plot(profile, (gate.evaluation.min_ndcg_gain, gate.holdout.min_ndcg_gain))
        parts = [move_facts(standing.active, profile.pk), plot, *orders]
        return Preview(summary, self.confirm, state_of(standing), parts)

    @property
    def confirm(self) -> str:
        return f"Activate {short(self.obj.pk)}"


class ProposeActivation(Activation):
    name, path, label, kind = "propose", "<uuid:object_id>/propose/", "Propose activation…", "primary"
    verb = "Proposes to activate"

    @classmethod
    def fits(cls, standing: Standing) -> bool:
        return standing.gate.document.four_eyes_in_admin and not standing.is_active

    @classmethod
    def why_not(cls, standing: Standing, request: HttpRequest) -> str:
        if not standing.gate.document.four_eyes_in_admin:
            return "The gate policy asks for no second person; activate it."
        if standing.own_proposals:
            by = standing.own_proposals[0]
            you = by.proposed_by_id == request.user.pk
            return f"{'You' if you else person_of(by.proposed_by)} proposed it already."
        return activation_refusal(standing)

    @property
    def confirm(self) -> str:
        return f"Propose {short(self.obj.pk)}"

    def command(self, standing: Standing, data: dict[str, Any]) -> Done:
        made = proposals.propose_activation(
            profile_id=standing.profile.pk, expected_active=standing.active, reason=data["reason"]
        )
        return Done(format_html("Proposed. Another person approves it until {}.", ui.when(made.valid_until)))


class ActivateAlone(Activation):
    """Where the gate policy asks for no second person."""

    name, path, label, kind = "activate", "<uuid:object_id>/activate/", "Activate…", "primary"

    @classmethod
    def fits(cls, standing: Standing) -> bool:
        return not standing.gate.document.four_eyes_in_admin and not standing.is_active

    @classmethod
    def why_not(cls, standing: Standing, request: HttpRequest) -> str:
        if standing.gate.document.four_eyes_in_admin:
            return "The gate policy asks for a second person; propose it."
        return activation_refusal(standing)

    def command(self, standing: Standing, data: dict[str, Any]) -> Done:
        proposals.activate_for(profile_id=standing.profile.pk, command=command_of(standing, data))
        return Done(f"{short(standing.profile.pk)} is active.")


class OnProposal(PointerAction):
    """Base of what is done to one proposal on the page of its profile."""

    proposal: ActivationProposal

    def get_object(self, request: HttpRequest, object_id: str = "", **kwargs: Any) -> Any:
        profile = super().get_object(request, object_id)
        found = ActivationProposal.objects.filter(profile_id=profile.pk, pk=kwargs["proposal_id"])
        proposal = found.select_related("proposed_by").first()
        if proposal is None:
            raise Http404
        self.proposal = profile.proposal_seen = proposal
        return profile

    @property
    def proposal_state(self) -> str:
        """Status as it is now: a state that has changed since the form was opened is another version."""
        found = ActivationProposal.objects.filter(pk=self.proposal.pk)
        return str(found.values_list("status", flat=True).get())


class ApproveActivation(Activation, OnProposal):
    name, path, kind = "approve", "<uuid:object_id>/approve/<uuid:proposal_id>/", "primary"
    label = "Approve…"
    title = "Approve the activation"

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        return cls.why_not_for(standing_of(obj), obj.proposal_seen, request)

    @classmethod
    def why_not_for(cls, standing: Standing, proposal: ActivationProposal, request: HttpRequest) -> str:
        """Why this person cannot approve this proposal now."""
        waiting = {one.pk for one in standing.proposals}
        if proposal.pk not in waiting:
            return in_words(
                APPROVALS, "lapsed" if proposal.status == ProposalStatus.OPEN else proposal.status
            )
        if proposal.proposed_by_id == request.user.pk:
            return APPROVALS["same_person"]
        return activation_refusal(standing)

    def preview_of(self, standing: Standing) -> Preview:
        shown = super().preview_of(standing)
        proposal = self.proposal
        facts = ui.Facts(
            [
                ui.Fact("proposed by", person_of(proposal.proposed_by) or ui.nothing("erased")),
                ui.Fact("at", ui.when(proposal.proposed_at)),
                ui.Fact("good until", ui.deadline(proposal.valid_until)),
                ui.Fact("reason", proposal.reason),
            ]
        )
        state = {**shown.state, "proposal": self.proposal_state, "proposal version": proposal.version}
        return Preview(shown.summary, shown.confirm, state, [facts, *shown.parts])

    @property
    def confirm(self) -> str:
        return f"Approve and activate {short(self.obj.pk)}"

    def command(self, standing: Standing, data: dict[str, Any]) -> Done:
        proposals.approve_activation(
            proposal_id=self.proposal.pk,
            version=self.proposal.version,
            change_id=data["change_id"],
            reason=data["reason"],
        )
        return Done(
            f"{short(standing.profile.pk)} is active, proposed by {person_of(self.proposal.proposed_by)}."
        )


class WithdrawProposal(OnProposal):
    name, path, kind = "withdraw", "<uuid:object_id>/withdraw/<uuid:proposal_id>/", "danger-link"
    label = "Withdraw…"
    title = "Withdraw the proposal"

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        waiting = obj.proposal_seen.status == ProposalStatus.OPEN
        return "" if waiting else in_words(APPROVALS, obj.proposal_seen.status)

    def preview_of(self, standing: Standing) -> Preview:
        by = person_of(self.proposal.proposed_by) or "somebody"
        summary = f"Closes the proposal of {by} unused. The pointer stays at {short(standing.active)}."
        return Preview(summary, "Withdraw 1 proposal", {"proposal": self.proposal_state})

    def command(self, standing: Standing, data: dict[str, Any]) -> Done:
        proposals.withdraw_proposal(proposal_id=self.proposal.pk, reason=data["reason"])
        return Done("The proposal is withdrawn.")
