"""Retention reviews: may raw records still live for as long as they do?"""

from collections.abc import Mapping, Sequence
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
DECIDED = {
    "keep": "keep",
    "shorten": "shorten",
    "extend_needs_schema_change": "extend, which changes nothing",
}
LIMITS = {"text_days": ("a text lives", "days"), "record_hours": ("a record lives", "hours")}
EARLIER_SHOWN = 12
WORDS: dict[tuple[str, str, str], str] = {}
BANDS: dict[tuple[str, str], tuple[str, dict[str, str]]] = {}


def register_words(subject: str, group: str, words: Mapping[str, str]) -> None:
    """Have the numbers of a group of inputs read as words. Shown in the order in which they are registered."""
    WORDS.update({(subject, group, name): said for name, said in words.items()})


def register_bands(subject: str, group: str, title: str, bands: Mapping[str, str]) -> None:
    """Have numbers of a group drawn as bars beside one another: name by name, with the label of its band."""
    BANDS[subject, group] = (title, dict(bands))


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
        required=False,
        min_value=1,
        label="Days that a text lives",
        help_text="Only to shorten.",
        widget=forms.NumberInput(attrs=INPUT),
    )
    record_hours = forms.IntegerField(
        required=False,
        min_value=1,
        label="Hours that a record lives",
        help_text="Only to shorten.",
        widget=forms.NumberInput(attrs=INPUT),
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
    def permitted(cls, model_admin: Any, request: HttpRequest, obj: Any) -> bool:
        return super().permitted(model_admin, request, obj) and obj.decision == Decision.SHORTEN

    @classmethod
    def blocked(cls, model_admin: Any, request: HttpRequest, obj: Any) -> str:
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
        return format_html('<span class="gv-main">{}: {}</span>', obj.subject, DECIDED[obj.decision])

    @admin.display(description="state")
    def state(self, obj: RetentionReview) -> Any:
        if obj.decision != Decision.SHORTEN:
            return "decided"
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
        return f"Retention review of {obj.subject}: {DECIDED[obj.decision]}"

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
        sections = [
            *bands_of(obj),
            ui.Section("Inputs", "inputs", inputs_of(obj), "frozen with the decision"),
            ui.Section("Earlier decisions", "earlier", self._earlier(obj)),
        ]
        if obj.limits:
            sections.insert(0, ui.Section("Limits", "limits", limits_of(obj)))
        return {"facts": ui.Facts(facts, first=True), "sections": sections}

    def _earlier(self, obj: RetentionReview) -> ui.Part:
        """What was decided before of the same records, newest first."""
        found = RetentionReview.objects.filter(
            workspace_id=obj.workspace_id, subject=obj.subject, made_at__lt=obj.made_at
        ).select_related("made_by")
        rows = [
            ui.Record(
                [
                    ui.when(row.made_at),
                    format_html('<a href="{}">{}</a>', self.url("change", row.pk), DECIDED[row.decision]),
                    self.state(row),
                    str(row.made_by),
                ]
            )
            for row in found.order_by("-made_at", "-id")[:EARLIER_SHOWN]
        ]
        columns = [ui.Column("made"), ui.Column("decision", "main"), ui.Column("state"), ui.Column("by")]
        empty = ui.EmptyState("This is the first review of these records.", level=3)
        return ui.Records("Earlier decisions", columns, rows, header=1, empty=empty)


def limits_of(obj: RetentionReview) -> ui.Records:
    rows = [
        ui.Record([LIMITS[name][0], f"{ui.count(value)} {LIMITS[name][1]}"])
        for name, value in sorted(obj.limits.items())
    ]
    return ui.Records("Shorter limits", [ui.Column("limit", "main"), ui.Column("at most", "num")], rows)


def bands_of(obj: RetentionReview) -> Sequence[ui.Section]:
    """What is drawn of the inputs; a band that nobody could measure is a gap."""
    sections = []
    for group, values in sorted(obj.inputs.items()):
        title, bands = BANDS.get((obj.subject, group), ("", {}))
        if bands:
            series = ui.Series("cases", [values.get(name) for name in bands])
            empty = "Not measured in any of them."
            trend = ui.Trend(
                title,
                list(bands.values()),
                [series],
                "Age",
                empty=empty,
                zeros=True,
                open_table=True,
                in_time=False,
            )
            sections.append(ui.Section("By age", f"bands-{group}", trend))
    return sections


def inputs_of(obj: RetentionReview) -> ui.Records:
    """What the decision was made on; a number that nobody could measure says so, one without words keeps its name."""
    known = {key: at for at, key in enumerate(WORDS)}
    keys = [(obj.subject, group, name) for group, values in obj.inputs.items() for name in values]
    drawn = {(*group, name) for group, (_, bands) in BANDS.items() for name in bands}
    rows = []
    for key in sorted(keys, key=lambda key: (known.get(key, len(known)), key)):
        _, group, name = key
        if key not in drawn:
            value = obj.inputs[group][name]
            words = WORDS.get(key) or f"{group}: {name.replace('_', ' ')}"
            rows.append(ui.Record([words, "not measured" if value is None else ui.count(value)]))
    return ui.Records("Inputs of the decision", [ui.Column("input", "main"), ui.Column("value", "num")], rows)
