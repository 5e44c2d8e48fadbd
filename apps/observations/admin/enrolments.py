"""Enrolments: who takes part, under which wording, and since when no more."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.core.admin import Done, GovernedAction, Preview, ReasonForm, choice_filter
from apps.observations.admin.kill_switch_head import WithKillSwitch
from apps.observations.models import Enrolment
from apps.observations.services import enrolments

INPUT = {"class": "gv-input"}


def _by_state(rows: QuerySet[Enrolment], value: str) -> QuerySet[Enrolment]:
    return rows.filter(withdrawn_at__isnull=value == "active")


STATE = choice_filter("state", "state", [("active", "active"), ("withdrawn", "withdrawn")], narrow=_by_state)


class EnrolForm(ReasonForm):
    principal = forms.UUIDField(
        label="Principal", help_text="Its id.", widget=forms.TextInput(attrs={**INPUT, "data-focus": ""})
    )
    purpose = forms.CharField(max_length=64, help_text="A code.", widget=forms.TextInput(attrs=INPUT))
    consent_version = forms.CharField(
        max_length=64, help_text="A code: the wording agreed to.", widget=forms.TextInput(attrs=INPUT)
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.order_fields(["principal", "purpose", "consent_version", "reason"])


class Enrol(GovernedAction):
    name, path, label, kind = "enrol", "enrol/", "Enrol…", "primary"
    title = "Enrol a principal"
    grants = (enrolments.GRANT,)
    on_object = False
    form_class = EnrolForm

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = (
            "Its searches may be observed from now on, while the mode is on. It may withdraw at any time."
        )
        return Preview(summary, "Enrol 1 principal")

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        enrolments.enrol(
            principal_id=data["principal"],
            purpose=data["purpose"],
            consent_version=data["consent_version"],
            reason=data["reason"],
        )
        return Done("The principal takes part.", self.model_admin.url("changelist"))


class Withdraw(GovernedAction):
    name, path, label, kind = "withdraw", "<uuid:object_id>/withdraw/", "Withdraw…", "danger"
    title = "Withdraw the enrolment"
    grants = (enrolments.GRANT,)

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        return "It is withdrawn already." if obj.withdrawn_at else ""

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = (
            "Nothing more is observed. What was written keeps its deadline. Only a new enrolment undoes it."
        )
        return Preview(summary, "Withdraw 1 enrolment", {"withdrawn": str(bool(obj.withdrawn_at))})

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        enrolments.withdraw(enrolment_id=obj.pk, reason=data["reason"])
        return Done("The enrolment is withdrawn.")


@admin.register(Enrolment)
class EnrolmentAdmin(WithKillSwitch):
    list_name = "enrolments"
    list_display = ("whose", "state", "purpose", "consent_version", "enrolled")
    list_select_related = ("workspace", "enrolled_by")
    list_filter = (STATE,)
    keyset = ("-enrolled_at", "-id")
    view_grants = ("operate_collection", "review_retention", "audit")
    governed = (Enrol, Withdraw)

    @admin.display(description="principal")
    def whose(self, obj: Enrolment) -> SafeString:
        return format_html('<span class="gv-main">{}</span>', ui.short_id(obj.principal_id, "principal id"))

    @admin.display(description="state")
    def state(self, obj: Enrolment) -> ui.Mark:
        return ui.Mark("plain", "withdrawn") if obj.withdrawn_at else ui.Mark("ok", "active", bare=True)

    @admin.display(description="enrolled")
    def enrolled(self, obj: Enrolment) -> SafeString:
        return ui.when(obj.enrolled_at)

    def object_title(self, obj: Any) -> str:
        return f"Enrolment {str(obj.pk)[-7:]}"

    def empty_why(self) -> str:
        return "Nobody takes part, so nothing is observed."

    def page_context(self, request: HttpRequest, obj: Enrolment) -> dict[str, Any]:
        facts = [
            ui.Fact("state", self.state(obj)),
            ui.Fact("enrolled", ui.when(obj.enrolled_at, relative=True)),
            ui.Fact("by", str(obj.enrolled_by or "a person who is gone")),
            ui.Fact("principal", ui.short_id(obj.principal_id, "principal id", main=True)),
            ui.Fact("purpose", obj.purpose),
            ui.Fact("consent", obj.consent_version),
            ui.Fact("workspace", obj.workspace),
        ]
        if obj.withdrawn_at:
            facts.append(ui.Fact("withdrawn", ui.when(obj.withdrawn_at)))
        return {"facts": ui.Facts(facts, first=True), "sections": []}
