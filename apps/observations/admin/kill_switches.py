"""The kill switch: stops all collection of a workspace, or of the installation, at once."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.core.admin import (
    Done,
    GovernedAction,
    ModelAdmin,
    Preview,
    ReasonForm,
    current_workspace,
    workspace_choices,
    workspaces_with,
)
from apps.observations.models import KillSwitch
from apps.observations.services import enrolments


class OfKillSwitch(GovernedAction):
    grants = (enrolments.GRANT,)

    @classmethod
    def permitted(cls, model_admin: Any, request: HttpRequest, obj: Any) -> bool:
        if getattr(obj, "workspace_id", None) is None:
            superuser = bool(getattr(request.user, "is_superuser", False))
            return superuser or (obj is None and bool(workspaces_with(request, *cls.grants)))
        return super().permitted(model_admin, request, obj)


class Throw(OfKillSwitch):
    name, path, label, kind = "throw", "throw/", "Stop collection…", "danger"
    title = "Stop collection"
    on_object = False

    def make_form(self, request: HttpRequest, obj: Any, data: Any = None) -> ReasonForm:
        form = ReasonForm(data)
        allowed = workspaces_with(request, *self.grants)
        choices = [(str(w.pk), w.name) for w in workspace_choices(request) if w.pk in allowed]
        if getattr(request.user, "is_superuser", False):
            choices.append(("", "the whole installation"))
        here = current_workspace(request)
        form.fields["workspace"] = forms.ChoiceField(
            choices=choices,
            required=False,
            label="Of",
            initial=str(here.pk) if here else None,
            widget=forms.Select(attrs={"class": "gv-input"}),
        )
        form.order_fields(["workspace", "reason"])
        return form

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = (
            "No search becomes an observation any more. What is written keeps its deadline; expiry goes on."
        )
        return Preview(summary, "Stop collection")

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        chosen = UUID(data["workspace"]) if data["workspace"] else None
        enrolments.throw_kill_switch(workspace_id=chosen, reason=data["reason"])
        return Done("Collection is stopped.", self.model_admin.url("changelist"))


class Release(OfKillSwitch):
    name, path, label, kind = "release", "<uuid:object_id>/release/", "Release…", "danger"

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        return "It is released already." if obj.released_at else ""

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = "Collection goes on, as far as mode and enrolments allow it."
        return Preview(summary, "Release the kill switch", {"released": str(bool(obj.released_at))})

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        enrolments.release_kill_switch(kill_switch_id=obj.pk, reason=data["reason"])
        return Done("The kill switch is released.")


@admin.register(KillSwitch)
class KillSwitchAdmin(ModelAdmin):
    list_name = "kill switches"
    list_display = ("where", "state", "why", "thrown")
    list_select_related = ("workspace", "thrown_by", "released_by")
    keyset = ("-thrown_at", "-id")
    view_grants = ("operate_collection", "review_retention", "audit")
    page_template = "core/page.html"
    governed = (Throw, Release)

    @admin.display(description="of")
    def where(self, obj: KillSwitch) -> Any:
        return obj.workspace or "the whole installation"

    @admin.display(description="state")
    def state(self, obj: KillSwitch) -> ui.Mark:
        return ui.Mark("plain", "released") if obj.released_at else ui.Mark("warn", "collection is stopped")

    @admin.display(description="reason")
    def why(self, obj: KillSwitch) -> SafeString:
        return format_html('<span class="gv-main">{}</span>', obj.reason)

    @admin.display(description="thrown")
    def thrown(self, obj: KillSwitch) -> SafeString:
        return ui.when(obj.thrown_at)

    def object_title(self, obj: Any) -> str:
        return f"Kill switch of {self.where(obj)}"

    def empty_why(self) -> str:
        return "Nobody has stopped collection here."

    def page_context(self, request: HttpRequest, obj: KillSwitch) -> dict[str, Any]:
        facts = [
            ui.Fact("state", self.state(obj)),
            ui.Fact("thrown", ui.when(obj.thrown_at, relative=True)),
            ui.Fact("by", str(obj.thrown_by or "a person who is gone")),
            ui.Fact("of", self.where(obj)),
            ui.Fact("reason", obj.reason),
        ]
        if obj.released_at:
            facts.append(ui.Fact("released", ui.when(obj.released_at)))
        return {"facts": ui.Facts(facts, first=True), "sections": []}
