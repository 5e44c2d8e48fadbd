"""Observations: what was asked of the memory by whom, what came back, and until when the record lives."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import clock, ui
from apps.core.admin import DayFilter, Done, GovernedAction, Preview, ReasonForm, choice_filter, holds
from apps.observations.admin.kill_switch_head import WithKillSwitch
from apps.observations.exceptions import JournalClosed
from apps.observations.models import ObservationFeedback, StaffObservation
from apps.observations.models.observations import Corpus
from apps.observations.services.staff import is_open, reveal_text

DISPOSITIONS = ("retained", "expired", "disabled", "filtered", "private")
CORPUS = choice_filter(
    "corpus", "corpus", list(Corpus.choices), narrow=lambda rows, value: rows.filter(corpus=value)
)
DISPOSITION = choice_filter(
    "text",
    "text",
    [(name, name) for name in DISPOSITIONS],
    narrow=lambda rows, value: rows.filter(text_disposition=value),
)


class ObservedDay(DayFilter):
    field = "observed_at"


class RevealText(GovernedAction):
    name, path, label = "reveal", "<uuid:object_id>/reveal/", "Reveal text…"
    title = "Reveal the query"
    grants = ("reveal_text",)
    fill = "#query"

    @classmethod
    def button(cls, model_admin: Any, request: HttpRequest, obj: Any) -> ui.ActionButton | None:
        # It stands at the closed text, not among the actions of the page.
        return None

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = "Shows what was asked, to you, in one answer. Who revealed it and why is kept."
        return Preview(summary, "Reveal 1 query", {"text": obj.text_disposition})

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        text = reveal_text(observation_id=obj.pk, reason=data["reason"])
        shown = ui.LongText(text) if text is not None else "No text is kept."
        return Done(f"Revealed by you at {clock.now():%H:%M:%S} UTC.", revealed=shown)


@admin.register(StaffObservation)
class ObservationAdmin(WithKillSwitch):
    list_name = "observations"
    list_display = ("asked", "whose", "hits", "corpus", "text", "lives_until")
    list_select_related = ("principal", "workspace")
    list_filter = (CORPUS, DISPOSITION, ObservedDay)
    keyset = ("-observed_at", "-id")
    view_grants = ("view_traces",)
    governed = (RevealText,)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Nothing while the journal is closed after a restore, whichever page asks."""
        rows = super().get_queryset(request)
        return rows if is_open() else rows.none()

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        return super().changelist_view(request, extra_context) if is_open() else closed(request)

    def page_view(self, request: HttpRequest, object_id: str) -> TemplateResponse:
        return super().page_view(request, object_id) if is_open() else closed(request)

    @admin.display(description="observed")
    def asked(self, obj: StaffObservation) -> SafeString:
        return ui.when(obj.observed_at)

    @admin.display(description="principal")
    def whose(self, obj: StaffObservation) -> SafeString:
        return format_html("{}", obj.principal.display_name or ui.formats.middle_cut(obj.principal.subject))

    @admin.display(description="hits")
    def hits(self, obj: StaffObservation) -> str:
        return ui.count(len(obj.snapshot["hits"]))

    @admin.display(description="text")
    def text(self, obj: StaffObservation) -> str:
        return obj.text_disposition

    @admin.display(description="lives until")
    def lives_until(self, obj: StaffObservation) -> SafeString:
        return ui.deadline(obj.record_expires_at)

    def object_title(self, obj: Any) -> str:
        return f"Observation {str(obj.pk)[-7:]}"

    def empty_why(self) -> str:
        return "Nothing is observed unless the mode is on and somebody takes part."

    def page_context(self, request: HttpRequest, obj: StaffObservation) -> dict[str, Any]:
        trace = ui.nothing("deleted")
        if obj.trace_id:
            href = reverse("admin:traces_trace_change", args=[obj.trace_id])
            trace = ui.short_id(obj.trace_id, "trace id", href=href)
        facts = [
            ui.Fact("observed", ui.when(obj.observed_at)),
            ui.Fact("id", ui.short_id(obj.pk, "observation id", main=True)),
            ui.Fact("principal", ui.person(obj.principal.display_name, obj.principal.subject)),
            ui.Fact("record lives until", ui.deadline(obj.record_expires_at)),
            ui.Fact("text lives until", ui.deadline(obj.text_expires_at, absent="no text")),
            ui.Fact("corpus", obj.corpus),
            ui.Fact("trace", trace),
            ui.Fact("purpose", f"{obj.purpose}, consent {obj.consent_version}"),
            ui.Fact("release", obj.release or ui.nothing("unknown")),
        ]
        return {
            "lead": text_lock(self, request, obj),
            "facts": ui.Facts(facts, first=True),
            "sections": [
                ui.Section(title="What was returned", anchor="hits", content=hits_of(obj)),
                ui.Section(title="Feedback", anchor="feedback", content=feedback_of(obj)),
            ],
        }


def closed(request: HttpRequest) -> TemplateResponse:
    """The journal is another database's until the restore gate is opened."""
    told = {
        "part": "The journal",
        "still_works": "This database was restored or copied. The command journal_gate opens its journal.",
    }
    return TemplateResponse(request, "503.html", told, status=JournalClosed.status)


def text_lock(model_admin: ObservationAdmin, request: HttpRequest, obj: StaffObservation) -> SafeString:
    """The query, closed; without a live text it only says why."""
    if obj.text_disposition != "retained":
        return format_html('<span id="query">{}</span>', ui.Lock(f"no text: {obj.text_disposition}", ""))
    may = holds(request, obj, RevealText.grants[0])
    url = model_admin.url(RevealText.name, obj.pk) if may else ""
    return format_html('<span id="query">{}</span>', ui.Lock("text closed", url))


HASHES = (
    ("indexed text", "indexedContentHash"),
    ("retrieved text", "retrievedContentHash"),
    ("returned text", "returnedContentHash"),
    ("returned parent", "returnedParentHash"),
    ("source", "sourceRef"),
)


def hits_of(obj: StaffObservation) -> ui.Records:
    """Ranks, ids and hashes, as they were returned; a row opens to every hash of its hit."""
    rows = [
        ui.Record(
            [
                str(hit["rank"]),
                ui.short_id(hit["id"], "node id"),
                ui.short_hash(hit["returnedContentHash"], "hash of the returned text"),
                ui.short_hash(hit["sourceRef"], "hash of the source"),
                "excerpt" if hit["excerpted"] else "whole",
            ],
            ui.Facts([ui.Fact(name, _whole(hit[key])) for name, key in HASHES]),
        )
        for hit in obj.snapshot["hits"]
    ]
    columns = [
        ui.Column("rank", "num"),
        ui.Column("node", "main"),
        ui.Column("text"),
        ui.Column("source", later=True),
        ui.Column("returned"),
    ]
    return ui.Records("Hits", columns, rows, header=1, empty=ui.EmptyState("No hits.", level=3))


def _whole(digest: str | None) -> SafeString:
    if digest is None:
        return ui.nothing("none")
    return format_html('<code class="gv-wrap">{}</code>', digest)


def feedback_of(obj: StaffObservation) -> ui.Records:
    """What its principal said of the hits; what was withdrawn is not shown."""
    found = ObservationFeedback.objects.filter(
        principal_id=obj.principal_id, observation_id=obj.pk, withdrawn_at=None
    ).order_by("-updated_at", "-id")
    rows = [
        ui.Record(
            [
                ui.short_id(each.hit_id, "node id"),
                "helpful" if each.helpful else "not helpful",
                {True: "cited", False: "not cited", None: "unknown"}[each.cited],
                ui.when(each.updated_at),
            ]
        )
        for each in found
    ]
    columns = [ui.Column("node", "main"), ui.Column("verdict"), ui.Column("citation"), ui.Column("said")]
    return ui.Records("Feedback", columns, rows, empty=ui.EmptyState("No feedback.", level=3))
