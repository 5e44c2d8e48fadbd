"""Retention reviews: may raw records still live for as long as they do?"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import clock, ui
from apps.core.admin import (
    Done,
    GovernedAction,
    ModelAdmin,
    Preview,
    ReasonForm,
    workspace_choices,
    workspaces_with,
)
from apps.operations import reviews
from apps.operations.models import RetentionReview
from apps.operations.models.reviews import Decision

INPUT = {"class": "gv-input"}
DECISIONS = [
    ("keep", "keep: change nothing"),
    ("shorten", "shorten: another person approves it"),
    ("extend_needs_schema_change", "extend: recorded, changes nothing"),
]
# Inputs (`group.name`), limits and decisions in words; a code that is not here is shown as it is.
WORDS: dict[str, str] = {
    Decision.KEEP: "keep",
    Decision.SHORTEN: "shorten",
    Decision.EXTEND: "extend, which changes nothing",
}


def register_words(words: Mapping[str, str]) -> None:
    """Have inputs and limits of another app's subject read as words; stored and told to programs they stay codes."""
    WORDS.update(words)


def in_words(code: str) -> str:
    return WORDS.get(code, code.replace(".", ": ").replace("_", " "))


class DecideForm(ReasonForm):
    decision = forms.ChoiceField(choices=DECISIONS, widget=forms.RadioSelect, initial="keep")
    days_ahead = forms.IntegerField(
        min_value=1,
        max_value=92,
        initial=30,
        label="Next review in",
        help_text="Days, 1 to 92.",
        widget=forms.NumberInput(attrs=INPUT),
    )
    text_days = forms.IntegerField(
        required=False, min_value=1, help_text="Only to shorten.", widget=forms.NumberInput(attrs=INPUT)
    )
    record_hours = forms.IntegerField(
        required=False, min_value=1, help_text="Only to shorten.", widget=forms.NumberInput(attrs=INPUT)
    )


class Decide(GovernedAction):
    name, path, label, kind = "decide", "decide/", "Hold a review…", "primary"
    title = "Hold a retention review"
    grants = (reviews.GRANT,)
    on_object = False
    form_class = DecideForm

    def make_form(self, request: HttpRequest, obj: Any, data: Any = None) -> ReasonForm:
        form = DecideForm(data)
        allowed = workspaces_with(request, *self.grants)
        form.fields["workspace"] = forms.ChoiceField(
            choices=[(str(w.pk), w.name) for w in workspace_choices(request) if w.pk in allowed],
            widget=forms.Select(attrs=INPUT),
        )
        form.fields["subject"] = forms.ChoiceField(
            choices=[(name, name) for name in reviews.subjects()], widget=forms.Select(attrs=INPUT)
        )
        form.order_fields(
            ["workspace", "subject", "decision", "text_days", "record_hours", "days_ahead", "reason"]
        )
        return form

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = "The numbers as they are now are frozen with the decision. No deadline moves later."
        return Preview(summary, "Record the decision")

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        limits = {name: data[name] for name in ("text_days", "record_hours") if data[name] is not None}
        row = reviews.decide(
            subject=data["subject"],
            workspace_id=UUID(data["workspace"]),
            decision=Decision(data["decision"]),
            next_due_at=clock.now() + timedelta(days=data["days_ahead"]),
            limits=limits,
            reason=data["reason"],
        )
        return Done("The decision is recorded.", self.model_admin.url("change", row.pk))


class Approve(GovernedAction):
    name, path, label, kind = "approve", "<uuid:object_id>/approve/", "Approve…", "danger"
    title = "Approve the shortening"
    grants = (reviews.GRANT,)

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
        if obj.decision != Decision.SHORTEN:
            return "Only a shortening needs a second person."
        if obj.approved_at:
            return "It is approved already."
        if obj.made_by_id == request.user.pk:
            return "You made it; another person approves it."
        return ""

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        limits = {name: str(value) for name, value in obj.limits.items()}
        summary = (
            "Holds for new rows at once. Old rows past the new limits are gone for readers when the job ends."
        )
        return Preview(summary, "Shorten", limits, [limits_of(obj)])

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        reviews.approve(review_id=obj.pk, reason=data["reason"])
        return Done("The shortening is approved; its job is on its way.")


@admin.register(RetentionReview)
class RetentionReviewAdmin(ModelAdmin):
    list_name = "retention reviews"
    list_display = ("what", "state", "where", "made", "next_due")
    list_select_related = ("workspace", "made_by", "approved_by")
    keyset = ("-made_at", "-id")
    view_grants = ("review_retention", "operate_collection", "audit")
    page_template = "core/page.html"
    governed = (Decide, Approve)

    @admin.display(description="decision")
    def what(self, obj: RetentionReview) -> SafeString:
        return format_html('<span class="gv-main">{}: {}</span>', obj.subject, in_words(obj.decision))

    @admin.display(description="state")
    def state(self, obj: RetentionReview) -> Any:
        if obj.decision != Decision.SHORTEN:
            return ui.Mark("plain", "decided")
        if obj.approved_at is None:
            return ui.Mark("warn", "waits for a second person")
        return ui.Mark("ok", "carried out") if obj.carried_out_at else ui.Mark("warn", "job under way")

    @admin.display(description="workspace")
    def where(self, obj: RetentionReview) -> Any:
        return obj.workspace

    @admin.display(description="made")
    def made(self, obj: RetentionReview) -> SafeString:
        return ui.when(obj.made_at)

    @admin.display(description="next due")
    def next_due(self, obj: RetentionReview) -> SafeString:
        return ui.when(obj.next_due_at)

    def object_title(self, obj: Any) -> str:
        return f"Retention review: {in_words(obj.decision)}"

    def empty_why(self) -> str:
        return "The first review is due 30 days after a workspace began to keep observations."

    def page_context(self, request: HttpRequest, obj: RetentionReview) -> dict[str, Any]:
        facts = [
            ui.Fact("state", self.state(obj)),
            ui.Fact("made", ui.when(obj.made_at, relative=True)),
            ui.Fact("by", str(obj.made_by)),
            ui.Fact("was due", ui.when(obj.due_at)),
            ui.Fact("next due", ui.when(obj.next_due_at, relative=True)),
            ui.Fact("workspace", obj.workspace),
            ui.Fact("reason", obj.reason),
        ]
        if obj.approved_at:
            facts.append(ui.Fact("approved", ui.when(obj.approved_at)))
            facts.append(ui.Fact("approved by", str(obj.approved_by)))
        sections = [ui.Section(title="Inputs", anchor="inputs", content=inputs_of(obj))]
        if obj.limits:
            sections.insert(0, ui.Section(title="Limits", anchor="limits", content=limits_of(obj)))
        return {"facts": ui.Facts(facts, first=True), "sections": sections}


def limits_of(obj: RetentionReview) -> ui.Records:
    rows = [ui.Record([in_words(name), ui.count(value)]) for name, value in sorted(obj.limits.items())]
    return ui.Records("Shorter limits", [ui.Column("limit", "main"), ui.Column("value", "num")], rows)


def inputs_of(obj: RetentionReview) -> ui.Records:
    """What the decision was made on; a number that nobody could measure says so."""
    rows = [
        ui.Record([in_words(f"{group}.{name}"), "not measured" if value is None else ui.count(value)])
        for group, values in sorted(obj.inputs.items())
        for name, value in values.items()
    ]
    return ui.Records("Inputs of the decision", [ui.Column("input", "main"), ui.Column("value", "num")], rows)
