"""Opening a run, taking it on, asking, approving, enabling, and switching off."""

from typing import Any, ClassVar, cast
from uuid import UUID

from django import forms
from django.http import HttpRequest

from apps.core import ui
from apps.core.admin import (
    Done,
    GovernedAction,
    Preview,
    ReasonForm,
    holds,
    workspace_choices,
    workspaces_with,
)
from apps.observations.admin.activation.looking import OPERATES, REVIEWS
from apps.observations.admin.activation.outside import OutsideAction
from apps.observations.admin.activation.parts import evidence_table, processes_table
from apps.observations.admin.activation.words import STATES, VOID, VOIDS, name_of
from apps.observations.models import ActivationRun
from apps.observations.models.activation import RunState
from apps.observations.policy import MODES, Mode
from apps.observations.selectors.activation import ON, RunStanding, standing_of_run
from apps.observations.services import activation

COLLECTING = [(mode, mode) for mode in MODES if mode != "off"]
SELECT = forms.Select(attrs={"class": "gv-input"})


class OpenRun(GovernedAction):
    name, path, label, kind = "open", "open/", "Open a run…", "primary"
    title = "Open an activation run"
    grants = (OPERATES,)
    on_object = False

    def make_form(self, request: HttpRequest, obj: Any, data: Any = None) -> ReasonForm:
        form = ReasonForm(data)
        allowed = workspaces_with(request, *self.grants)
        choices = [(str(w.pk), w.name) for w in workspace_choices(request) if w.pk in allowed]
        form.fields["workspace"] = forms.ChoiceField(choices=choices, label="Workspace", widget=SELECT)
        form.fields["mode"] = forms.ChoiceField(
            choices=COLLECTING, label="Mode that it ends in", widget=SELECT, help_text="hash keeps no text."
        )
        form.order_fields(["workspace", "mode", "reason"])
        return form

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = "Opens a checklist. Nothing is collected until its evidence is whole and two persons agree."
        return Preview(summary, "Open 1 run")

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        run = activation.open_run(
            workspace_id=UUID(data["workspace"]), mode=cast(Mode, data["mode"]), reason=data["reason"]
        )
        return Done(f"A run for {run.mode} is open.", self.model_admin.url("change", run.pk))


class OnRun(GovernedAction):
    """Of one run, bound to where it stood when it was looked at."""

    grants: ClassVar[tuple[str, ...]] = (OPERATES,)

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        return cls.why_not(standing_in(obj), request)

    @classmethod
    def why_not(cls, standing: RunStanding, request: HttpRequest) -> str:
        """Why it cannot be done from here by this person; empty when it can."""
        return ""

    @classmethod
    def fits(cls, standing: RunStanding) -> bool:
        """Whether the act has any meaning in this state, so that it has a button."""
        return True

    @classmethod
    def button_in(
        cls, model_admin: Any, request: HttpRequest, standing: RunStanding
    ) -> ui.ActionButton | None:
        if not cls.fits(standing) or not holds(request, standing.run, *cls.grants):
            return None
        href = model_admin.url(cls.name, standing.run.pk)
        return ui.ActionButton(cls.label, href, cls.kind, blocked=cls.why_not(standing, request))


def standing_in(run: Any) -> RunStanding:
    """The standing of a run that this request has read; a change of it since is for the service to see."""
    if not hasattr(run, "standing_seen"):
        run.standing_seen = standing_of_run(run)
    return cast(RunStanding, run.standing_seen)


def seen(standing: RunStanding) -> dict[str, str]:
    """What a person decides on, by name."""
    run = standing.run
    return {
        "state": STATES[run.state],
        "mode now": standing.mode,
        "mode after": run.mode,
        "policy": f"version {standing.policy.version}, {standing.policy.hash[:8]}",
        "asked by": name_of(run.requested_by) if run.requested_by_id else "nobody",
        "take part": str(standing.enrolled),
        "missing, failed or stale": ", ".join(line.code for line in standing.blockers) or "nothing",
        "evidence and what it is bound to": standing.version[:8],
    }


def facts(standing: RunStanding) -> ui.Facts:
    return ui.Facts([ui.Fact(name, value) for name, value in seen(standing).items()])


class SwitchOff(OnRun):
    name, path, label, kind = "stop", "<uuid:object_id>/stop/", "Switch off…", "danger"
    title = "Switch collection off"

    @classmethod
    def why_not(cls, standing: RunStanding, request: HttpRequest) -> str:
        if standing.run.state in ON:
            return ""
        if standing.mode == "off":
            return "The mode is off."
        return "This run did not switch it on; the kill switch and the page of policies do it."

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        standing = standing_in(obj)
        summary = (
            "Waits for writes that are under way and lets none begin: after it no search that was admitted before can "
            f"become a record. {ui.count(standing.left.records)} records keep their deadlines; upkeep goes on."
        )
        state = {
            "state": STATES[obj.state],
            "mode now": standing.mode,
            "generation": str(standing.policy.version),
        }
        return Preview(summary, "Switch off 1 workspace", state, [processes_table(standing)])

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        run = activation.stop(run_id=obj.pk, reason=data["reason"])
        return Done(
            f"Off, as generation {run.stopped_generation}. D1 and D2 prove that every process follows."
        )


class TakeOn(OnRun, OutsideAction):
    name, path, label, kind = "advance", "<uuid:object_id>/advance/", "Take the run on…", "primary"
    title = "Take the run as far as its evidence carries it"

    @classmethod
    def fits(cls, standing: RunStanding) -> bool:
        before = standing.run.state in (RunState.DRAFT, RunState.PROVISIONED)
        whole = "A" if standing.run.state == RunState.DRAFT else "AB"
        return before and not standing.before.blockers(whole)

    @classmethod
    def why_not(cls, standing: RunStanding, request: HttpRequest) -> str:
        return (
            "" if cls.fits(standing) else "Evidence is missing, failed or stale, or it is as far as it goes."
        )

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        standing = standing_in(obj)
        return Preview(
            "Nothing is switched by this.", "Take 1 run on", seen(standing), [evidence_table(standing)]
        )

    def make_form(self, request: HttpRequest, obj: Any, data: Any = None) -> ReasonForm:
        form = ReasonForm(data)
        form.fields["reason"].required = False
        return form

    def carry_out(self, request: HttpRequest, data: dict[str, Any]) -> tuple[bool, str]:
        run = activation.advance_run(run_id=self.obj.pk, user_id=int(request.user.pk or 0))
        return True, f"The run is {STATES[run.state]}."


class AskForApproval(OnRun):
    name, path, label, kind = "request", "<uuid:object_id>/request/", "Ask for approval…", "primary"
    title = "Ask another person to approve enabling"

    @classmethod
    def fits(cls, standing: RunStanding) -> bool:
        at = standing.run.state in (RunState.READY, RunState.APPROVED)
        return at and (not standing.asked or bool(standing.void))

    @classmethod
    def why_not(cls, standing: RunStanding, request: HttpRequest) -> str:
        if standing.run.state not in (RunState.READY, RunState.APPROVED):
            return "The run is not ready."
        return "Evidence is missing, failed or stale." if standing.blockers else ""

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        standing = standing_in(obj)
        summary = f"Asks for the approval of exactly this, for 24 hours. {VOIDS}"
        parts = [facts(standing), evidence_table(standing)]
        return Preview(summary, f"Ask to enable {obj.mode}", seen(standing), parts, bound=standing.version)

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        run = activation.request_enabling(run_id=obj.pk, reason=data["reason"])
        assert run.valid_until is not None
        return Done(f"Asked. Another person approves it until {run.valid_until:%Y-%m-%d %H:%M:%S} UTC.")


class Approve(OnRun):
    name, path, label, kind = "approve", "<uuid:object_id>/approve/", "Approve…", "primary"
    title = "Approve enabling"
    grants: ClassVar[tuple[str, ...]] = (OPERATES, REVIEWS)

    @classmethod
    def fits(cls, standing: RunStanding) -> bool:
        return standing.asked and standing.run.state == RunState.READY

    @classmethod
    def why_not(cls, standing: RunStanding, request: HttpRequest) -> str:
        if not cls.fits(standing):
            return "Nobody has asked for it."
        if standing.run.requested_by_id == request.user.pk:
            return "You asked for it; another person approves."
        return VOID[standing.void] if standing.void else ""

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        standing = standing_in(obj)
        summary = f"Approves enabling {obj.mode}, as {name_of(obj.requested_by)} asked for it. {VOIDS}"
        until = ui.Facts([ui.Fact("good until", ui.deadline(obj.valid_until))])
        parts = [until, facts(standing), evidence_table(standing)]
        return Preview(summary, f"Approve {obj.mode}", seen(standing), parts, bound=standing.version)

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        activation.approve(run_id=obj.pk, version=preview.version, reason=data["reason"])
        return Done("Approved. Nothing is collected until it is enabled.")


class Enable(OnRun):
    name, path, label, kind = "enable", "<uuid:object_id>/enable/", "Enable…", "primary"
    title = "Enable collection"

    @classmethod
    def fits(cls, standing: RunStanding) -> bool:
        return standing.run.state == RunState.APPROVED

    @classmethod
    def why_not(cls, standing: RunStanding, request: HttpRequest) -> str:
        if not cls.fits(standing):
            return "Nobody has approved it."
        if standing.void:
            return VOID[standing.void]
        if standing.enrolled != 1:
            return f"A pilot has exactly one enrolled principal; {standing.enrolled} take part."
        return ""

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        standing = standing_in(obj)
        summary = (
            f"Searches of {standing.enrolled} enrolled principal become records, mode {obj.mode}. Without C2 and C3 "
            "within 24 hours it is switched off by itself."
        )
        parts = [facts(standing), processes_table(standing)]
        return Preview(summary, f"Enable {obj.mode}", seen(standing), parts, bound=standing.version)

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        run = activation.enable(run_id=obj.pk, reason=data["reason"])
        return Done(f"Enabled, as generation {run.generation}. C2, C3 and C4 within 24 hours.")


SWITCHES: tuple[type[OnRun], ...] = (SwitchOff, TakeOn, AskForApproval, Approve, Enable)


def run_buttons(model_admin: Any, request: HttpRequest, standing: RunStanding) -> list[ui.ActionButton]:
    """Off first, and always there; then what this state offers."""
    found = [switch.button_in(model_admin, request, standing) for switch in SWITCHES]
    return [button for button in found if button]


def label_of(run: ActivationRun) -> str:
    return f"Journal activation of {run.workspace.name}"
