"""What staff with `manage_profiles` do to a profile's pointer, each bound to the state that they saw.

The preview's state names what is active now; another one at the POST keeps the dialog and its reason, says what has
changed and offers the new state. A command carries the key that its form was made with, so that a form sent twice
counts once.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django import forms
from django.http import Http404, HttpRequest
from django.utils.html import format_html

from apps.core import ui
from apps.core.admin import Done, GovernedAction, Preview, ReasonForm
from apps.core.ids import uuid7
from apps.core.problems import StaleVersion
from apps.learning.admin.orders import a_day, orders_of
from apps.learning.admin.profile_parts import evidence_plot
from apps.learning.admin.words import BASE, CAUSES, in_words, person_of, scopes_in_words, short, state_name
from apps.learning.exceptions import ApprovalRequired, NotPromotable, StaleState, WrongBaseline
from apps.learning.models import ActivationProposal, ProposalStatus, RankingProfile
from apps.learning.selectors.staff import Standing, cause_now, standing_of
from apps.learning.services import proposals
from apps.learning.services.pointers import Command

GRANT = proposals.GRANT
TO_BASE = "base"
APPROVALS: dict[str, str] = {
    "same_person": "You proposed it; another person approves.",
    "lapsed": "The proposal is past its time.",
    "voided": "The pointer moved since, so the proposal is void.",
    "withdrawn": "The proposal was withdrawn.",
    "approved": "The proposal was used already.",
    "other_version": "The proposal was for another state.",
    "no_proposal": "Somebody has to propose it first.",
}


class CommandForm(ReasonForm):
    """A reason, and the key under which the command counts once."""

    change_id = forms.CharField(max_length=128, widget=forms.HiddenInput, initial=lambda: str(uuid7()))


class PointerAction(GovernedAction):
    """Base of the acts on a pointer. `act` calls `command`, which calls the service."""

    grants = (GRANT,)
    form_class = CommandForm
    standing: Standing

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        return cls.why_not(standing_of(obj), request) if obj is not None else ""

    @classmethod
    def why_not(cls, standing: Standing, request: HttpRequest) -> str:
        """Why it cannot be done from this state; empty when it can."""
        return ""

    @classmethod
    def button(cls, model_admin: Any, request: HttpRequest, obj: Any) -> ui.ActionButton | None:
        """The page builds its buttons from the standing that it has read; see `button_in`."""
        return None

    @classmethod
    def button_in(
        cls, model_admin: Any, request: HttpRequest, standing: Standing, *more: Any, label: str = ""
    ) -> ui.ActionButton | None:
        profile = standing.profile
        if not cls.permitted(model_admin, request, profile) or not cls.fits(standing):
            return None
        href = model_admin.url(cls.name, profile.pk, *more)
        return ui.ActionButton(label or cls.label, href, cls.kind, blocked=cls.why_not(standing, request))

    @classmethod
    def fits(cls, standing: Standing) -> bool:
        """Whether the act has any meaning in this state, so that it has a button."""
        return True

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        try:
            # The state that the preview was made from, not one that is read now: the service compares.
            return self.command(self.standing, data)
        except StaleState as moved:
            raise StaleVersion from moved
        except ApprovalRequired as missing:
            missing.detail = in_words(APPROVALS, str(missing.more.get("reason", "")))
            raise
        except (NotPromotable, WrongBaseline) as refused:
            refused.detail = refused.detail or CAUSES.get(str(refused.more.get("reason", "")), "")
            raise

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        self.standing = standing_of(obj)
        return self.preview_of(self.standing)

    def preview_of(self, standing: Standing) -> Preview:
        raise NotImplementedError

    def command(self, standing: Standing, data: dict[str, Any]) -> Done:
        raise NotImplementedError


def state_of(standing: Standing) -> dict[str, str]:
    """What an act is decided on, by name."""
    waiting = [f"{short(one.profile_id)} by {person_of(one.proposed_by)}" for one in standing.proposals]
    return {
        "active": state_name(standing.active),
        "this profile applies": "yes" if standing.cause is None else f"no: {CAUSES[standing.cause]}",
        "waiting for a second person": ", ".join(waiting) or "nothing",
        "gate": f"version {standing.gate.version}",
    }


def command_of(standing: Standing, data: dict[str, Any]) -> Command:
    return Command(data["change_id"], standing.active, data["reason"])


def of_what(standing: Standing) -> str:
    """`searches of principal maria in docs, wiki`."""
    owner = standing.profile.principal
    who = owner.display_name or ui.formats.middle_cut(owner.subject)
    return f"searches of {who} in {scopes_in_words(standing.profile.scopes)}"


def move_facts(now: UUID | None, then: UUID | None) -> ui.Facts:
    return ui.Facts([ui.Fact("ranked with now", short(now)), ui.Fact("after", short(then))])


def effect(profile: RankingProfile, to: UUID | None) -> tuple[str, list[Any]]:
    """How many receipts a day a move touches, and recent answers in their new order."""
    found = proposals.preview_move_for(profile_id=profile.pk, to=to)
    return a_day(found), [orders_of(found)]


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


class Deactivate(PointerAction):
    name, path, label, kind = "deactivate", "<uuid:object_id>/deactivate/", "Deactivate…", "danger-link"
    title = "Return to base scoring"

    @classmethod
    def fits(cls, standing: Standing) -> bool:
        return standing.is_active

    @classmethod
    def why_not(cls, standing: Standing, request: HttpRequest) -> str:
        return "" if standing.is_active else f"It is not active: {short(standing.active)} is."

    def preview_of(self, standing: Standing) -> Preview:
        rate, orders = effect(standing.profile, None)
        summary = f"Returns {of_what(standing)} to base scoring: {rate}."
        parts = [move_facts(standing.active, None), *orders]
        return Preview(summary, f"Deactivate {short(standing.profile.pk)}", state_of(standing), parts)

    def command(self, standing: Standing, data: dict[str, Any]) -> Done:
        proposals.deactivate_for(profile_id=standing.profile.pk, command=command_of(standing, data))
        return Done(f"{scopes_in_words(standing.profile.scopes)} is at base scoring.")


class RollBackForm(CommandForm):
    to = forms.ChoiceField(label="Back to", widget=forms.RadioSelect, choices=[(TO_BASE, BASE)])

    def __init__(self, data: Any, choices: Sequence[tuple[str, str]], initial: str) -> None:
        super().__init__(data)
        self.fields["to"].choices = choices  # type: ignore[attr-defined]
        self.fields["to"].initial = initial
        self.order_fields(["to", "reason", "change_id"])


class RollBack(PointerAction):
    """Back to a state that was active on this pointer before, or to base; nothing else is offered."""

    name, path, label, kind = "rollback", "<uuid:object_id>/rollback/", "Roll back to…", "danger-link"
    title = "Roll back"

    @classmethod
    def fits(cls, standing: Standing) -> bool:
        return standing.can_go_back

    @classmethod
    def why_not(cls, standing: Standing, request: HttpRequest) -> str:
        return "" if standing.can_go_back else "The pointer was never anywhere but at base scoring."

    def make_form(self, request: HttpRequest, obj: Any, data: Any = None) -> ReasonForm:
        standing = standing_of(obj)
        profiles = RankingProfile.objects.in_bulk(standing.former)
        choices = [(str(pk), _choice(profiles[pk])) for pk in standing.former if pk in profiles]
        if standing.active is not None:
            choices.append((TO_BASE, BASE))
        return RollBackForm(data, choices, choices[0][0] if choices else "")

    def preview_of(self, standing: Standing) -> Preview:
        rate, _ = effect(standing.profile, None)
        summary = f"Takes {of_what(standing)} from {short(standing.active)} back to what you choose: {rate}."
        states = {**state_of(standing), "can go back to": ", ".join(map(state_name, standing.former)) or BASE}
        return Preview(summary, f"Roll back from {short(standing.active)}", states)

    def command(self, standing: Standing, data: dict[str, Any]) -> Done:
        to = None if data["to"] == TO_BASE else UUID(data["to"])
        proposals.roll_back_for(profile_id=standing.profile.pk, to=to, command=command_of(standing, data))
        return Done(f"Rolled back to {short(to)}.")


def _choice(profile: RankingProfile) -> str:
    cause = cause_now(profile)
    return f"{short(profile.pk)}{f', which does not apply: {CAUSES[cause]}' if cause else ''}"


class RunDrill(GovernedAction):
    """A rehearsal on a pointer that no request can reach; its evidence stays on the page."""

    name, path, label = "drill", "<uuid:object_id>/drill/", "Profile rollback drill…"
    title = "Profile rollback drill"
    grants = (GRANT,)

    @classmethod
    def button(cls, model_admin: Any, request: HttpRequest, obj: Any) -> ui.ActionButton | None:
        return None

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        baseline = short(obj.baseline_profile_id)
        summary = (
            f"On a scratch pointer it starts at {baseline}, activates {short(obj.pk)}, sees that it applies, goes "
            "back, and to base. What searches are ranked with stays as it is. The evidence is stored."
        )
        return Preview(summary, "Run the drill", {"profile": str(obj.pk)})

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        drill = proposals.drill_for(profile_id=obj.pk, reason=data["reason"])
        return Done("The drill passed." if drill.passed else "The drill did not pass; the page says where.")
