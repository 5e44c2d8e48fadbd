"""Traces: which calls deserve a look; what was returned, what was used, what came of it."""

import json
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Exists, Max, OuterRef, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.core.admin import ModelAdmin, PrincipalFilter, WindowFilter, audit_trail, choice_filter, holds
from apps.core.admin.changelist import KeysetChangeList
from apps.feedback.admin.actions import (
    EraseTrace,
    HoldTrace,
    RevealQueries,
    RevealQuery,
    ReverseOutcome,
)
from apps.feedback.admin.labels import citations_words, label_marks
from apps.feedback.admin.ledger import current_strengths
from apps.feedback.models import Credit
from apps.traces.models import STAGES, ActionReceipt, Mode, ReceiptKind, Trace, TraceSource, Use
from apps.traces.pages import recording_mark, source_name, sources_of
from apps.traces.policy import policy_of
from apps.traces.selectors import provenance_of

OUTCOME_WORDS = {"confirmed": "confirmed", "corrected": "corrected", "rolled_back": "rolled back"}
OUTCOME_TONES = {"confirmed": "ok", "corrected": "warn", "rolled_back": "warn", "use": "run"}
MOST_RECEIPTS = 200


class TraceWindow(WindowFilter):
    default = "24h"


def _by_stage(rows: QuerySet[Trace], value: str) -> QuerySet[Trace]:
    reached = Use.objects.filter(principal_id=OuterRef("principal_id"), trace_id=OuterRef("pk"))
    if value == "0":
        return rows.filter(~Exists(reached))
    return rows.filter(Exists(reached.filter(stage__gte=int(value))))


def _by_outcome(rows: QuerySet[Trace], value: str) -> QuerySet[Trace]:
    kinds = [ReceiptKind.CONFIRMED, ReceiptKind.CORRECTED, ReceiptKind.ROLLED_BACK]
    found = ActionReceipt.objects.filter(principal_id=OuterRef("principal_id"), trace_id=OuterRef("pk"))
    if value == "none":
        return rows.filter(~Exists(found.filter(kind__in=kinds)))
    return rows.filter(Exists(found.filter(kind=value)))


def _by_recording(rows: QuerySet[Trace], value: str) -> QuerySet[Trace]:
    return rows.filter(source_count=0) if value == "zero_hit" else rows.filter(recording__status=value)


MODE = choice_filter("mode", "mode", Mode.choices)
RECORDING = choice_filter(
    "recording",
    "recording",
    [("complete", "complete"), ("partial", "partial"), ("zero_hit", "zero hit")],
    narrow=_by_recording,
)
STAGE = choice_filter(
    "stage",
    "stage",
    [("0", "retrieved only"), ("1", "selected or more"), ("2", "validated or more"), ("3", "used")],
    narrow=_by_stage,
)
OUTCOME = choice_filter(
    "outcome",
    "outcome",
    [("none", "none"), *OUTCOME_WORDS.items()],
    narrow=_by_outcome,
)


@admin.register(Trace)
class TraceAdmin(ModelAdmin):
    list_display = ("time", "returned", "whose", "reached", "came_of_it", "notes")
    list_select_related = ("principal",)
    list_filter = (TraceWindow, MODE, RECORDING, STAGE, OUTCOME, PrincipalFilter)
    keyset = ("-recorded_at", "-id")
    filters_open = True
    page_template = "traces/trace_page.html"
    governed = (RevealQueries, RevealQuery, HoldTrace, EraseTrace, ReverseOutcome)

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        """First source, stage reached and outcomes of all traces of the page, in three queries."""
        by_id = {row.pk: row for row in rows}
        for row in rows:
            row.first, row.stage, row.kinds = None, None, []
        firsts = TraceSource.objects.filter(trace_id__in=by_id, position=0)
        for source in firsts:
            by_id[source.trace_id].first = source_name(provenance_of(source))
        reached = Use.objects.filter(trace_id__in=by_id).values("trace_id").annotate(stage=Max("stage"))
        for use in reached:
            by_id[use["trace_id"]].stage = use["stage"]
        receipts = ActionReceipt.objects.filter(trace_id__in=by_id, kind__in=OUTCOME_WORDS)
        for trace_id, kind in receipts.order_by("recorded_at", "id").values_list("trace_id", "kind"):
            by_id[trace_id].kinds.append(kind)

    @admin.display(description="time")
    def time(self, obj: Trace) -> SafeString:
        return ui.when(obj.recorded_at)

    @admin.display(description="first source, and how many more")
    def returned(self, obj: Any) -> SafeString:
        if not obj.source_count:
            return format_html('<span class="gv-main gv-subtle">{}</span>', "– zero hit")
        more = f" +{obj.source_count - 1}" if obj.source_count > 1 else ""
        return format_html('<span class="gv-main">{}{}</span>', obj.first or "", more)

    @admin.display(description="principal")
    def whose(self, obj: Trace) -> SafeString:
        return SafeString(
            format_html("{}", obj.principal.display_name or ui.formats.middle_cut(obj.principal.subject))
        )

    @admin.display(description="stage")
    def reached(self, obj: Any) -> Any:
        if not obj.source_count:
            return ui.nothing("no source")
        return ui.StageDots(obj.stage or 0)

    @admin.display(description="outcome")
    def came_of_it(self, obj: Any) -> Any:
        return OUTCOME_WORDS[obj.kinds[-1]] if obj.kinds else ui.nothing("no outcome")

    @admin.display(description="notes")
    def notes(self, obj: Trace) -> Any:
        settings, recording = obj.settings or {}, obj.recording or {}
        if settings.get("filters_unmatched"):
            return ui.Mark("warn", "filter unmatched")
        if recording.get("status") == "partial":
            return ui.Mark("warn", f"partial {recording.get('excluded_sources', '')}".strip(), sign="◐")
        return ui.nothing("in order")

    def object_title(self, obj: Any) -> str:
        text = str(obj.pk)
        return f"Trace {text[:4]}…{text[-7:]}"

    def empty_state(self, changelist: KeysetChangeList) -> ui.EmptyState:
        longer = SafeString('<a class="gv-button" href="?window=7d">Last 7 days</a>')
        return ui.EmptyState("No call in this window.", "Traces appear with the first search.", longer)

    def page_context(self, request: HttpRequest, obj: Trace) -> dict[str, Any]:
        return trace_page(self, request, obj)


def trace_page(model_admin: TraceAdmin, request: HttpRequest, trace: Trace) -> dict[str, Any]:
    """Everything of the page beyond title, actions and audit."""
    edge_keys = list(
        TraceSource.objects.filter(trace_id=trace.pk)
        .exclude(path_edges__edge_key=None)
        .values_list("path_edges__edge_key", flat=True)
        .distinct()
    )
    strengths = current_strengths(trace.principal_id, trace.workspace_id, edge_keys)
    shown = sources_of(trace, labels=label_marks(trace), strengths=strengths)
    sections = [
        ui.Section(title="Sources", anchor="sources", content=shown.ranked, note=_sources_note(trace))
    ]
    if shown.graph is not None:
        sections.append(ui.Section(title="Graph axis", anchor="graph", content=shown.graph))
    if shown.paths is not None:
        sections.append(
            ui.Section(title="Paths", anchor="paths", content=shown.paths, note="strength is not relevance")
        )
    sections.append(
        ui.Section(title="What happened", anchor="happened", content=timeline(model_admin, request, trace))
    )
    details = [
        SimpleNamespace(title="Settings", tree=ui.JsonTree(trace.settings, "settings")),
        SimpleNamespace(title="Request", tree=ui.JsonTree(trace.request, "request")),
        SimpleNamespace(title="Recording", tree=ui.JsonTree(trace.recording, "recording")),
    ]
    receipts = list(
        ActionReceipt.objects.filter(trace_id=trace.pk).values_list("pk", flat=True)[:MOST_RECEIPTS]
    )
    newer, older = neighbours(model_admin, request, trace)
    return {
        "lead": query_lock(model_admin, request, trace),
        "facts": trace_facts(trace),
        "sections": sections,
        "details": details,
        "newer_url": newer,
        "older_url": older,
        "key": ui.FeatureKey(),
        "audit": audit_trail(trace, ("traces.actionreceipt", receipts)),
    }


def _sources_note(trace: Trace) -> str:
    excluded = (trace.recording or {}).get("excluded_sources", 0)
    if excluded:
        return f"{trace.source_count} recorded, {excluded} not recorded, at their place"
    return f"{trace.source_count} recorded"


def trace_facts(trace: Trace) -> ui.Facts:
    scopes = ", ".join(trace.scopes) if trace.scopes else "all of the principal's"
    policy = policy_of(trace.policy_id)
    facts = [
        ui.Fact("recorded", ui.when(trace.recorded_at)),
        ui.Fact("trace", ui.short_id(trace.pk, "trace id", main=True)),
        ui.Fact("principal", ui.person(trace.principal.display_name, trace.principal.subject)),
        ui.Fact("mode", trace.mode),
        ui.Fact("scopes", scopes),
        ui.Fact("took", f"{ui.count(trace.latency_ms)} ms"),
        ui.Fact(
            "profile", ui.short_id(trace.profile_id, "profile id") if trace.profile_id else "base scoring"
        ),
        ui.Fact("recording", recording_mark(trace)),
        ui.Fact("memory policy", f"version {policy.version}"),
        ui.Fact("deleted", ui.deadline(trace.expires_at)),
    ]
    if trace.retrieval_receipt_id:
        href = reverse("admin:retrieval_receipt_change", args=[trace.retrieval_receipt_id])
        receipt = ui.short_id(trace.retrieval_receipt_id, "receipt id", href=href)
        facts.insert(7, ui.Fact("retrieval receipt", receipt))
        facts.insert(8, ui.Fact("citations", citations_words(trace.retrieval_receipt_id)))
    if trace.context_tokens is not None:
        facts.append(ui.Fact("context", f"{ui.count(trace.context_tokens)} tokens"))
    return ui.Facts(facts, first=True)


def query_lock(model_admin: TraceAdmin, request: HttpRequest, trace: Trace) -> Any:
    """The closed query, or why there is none."""
    if trace.mode not in (Mode.SEARCH, Mode.CONTEXT):
        return format_html('<span class="gv-subtle">no query: {}</span>', trace.mode)
    if trace.query_erased_at:
        return format_html(
            '<span class="gv-subtle">query erased at {}</span>', ui.when(trace.query_erased_at)
        )
    return RevealQuery.lock(model_admin, request, trace, "query closed")


def neighbours(model_admin: TraceAdmin, request: HttpRequest, trace: Trace) -> tuple[str, str]:
    """The next newer and older trace of the workspace, two probes of one index."""
    rows = Trace.objects.filter(workspace_id=trace.workspace_id)
    at = trace.recorded_at
    newer = rows.filter(recorded_at__gt=at).order_by("recorded_at", "id").values_list("pk", flat=True).first()
    older = (
        rows.filter(recorded_at__lt=at).order_by("-recorded_at", "-id").values_list("pk", flat=True).first()
    )
    return (
        model_admin.url("change", newer) if newer else "",
        model_admin.url("change", older) if older else "",
    )


def timeline(model_admin: TraceAdmin, request: HttpRequest, trace: Trace) -> ui.Timeline:
    """Recorded, then every action receipt, oldest first; a reversal names what it reverses."""
    receipts = list(
        ActionReceipt.objects.defer("reason")
        .filter(trace_id=trace.pk)
        .order_by("recorded_at", "id")[:MOST_RECEIPTS]
    )
    active = set(Credit.objects.filter(trace_id=trace.pk, active=True).values_list("receipt_id", flat=True))
    reversed_ids = {receipt.confirmation_id for receipt in receipts if receipt.confirmation_id}
    may = holds(request, trace, "curate")
    events = [ui.Event(trace.recorded_at, "recorded", "client")]
    for receipt in receipts:
        action: Any = ""
        if (
            receipt.kind == ReceiptKind.CONFIRMED
            and may
            and receipt.pk not in reversed_ids
            and receipt.pk in active
        ):
            href = model_admin.url(ReverseOutcome.name, trace.pk, receipt.pk)
            action = ui.ActionButton("Reverse…", href, "danger-link", small=True)
        events.append(_event(receipt, action))
    return ui.Timeline(events)


def _event(receipt: ActionReceipt, action: Any) -> ui.Event:
    body = json.loads(receipt.body)
    confirmation: UUID | None = receipt.confirmation_id
    return ui.Event(
        at=receipt.recorded_at,
        title=_title(receipt, body),
        actor="staff" if receipt.actor == "staff" else "client",
        tone=OUTCOME_TONES[receipt.kind],  # type: ignore[arg-type]
        body=receipt.non_applied_reason.replace("_", " ") if receipt.non_applied_reason else "",
        id=f"receipt-{receipt.pk}",
        refers=(f"receipt-{confirmation}", f"confirmation {str(confirmation)[-7:]}")
        if confirmation
        else None,
        action=action,
    )


def _title(receipt: ActionReceipt, body: dict[str, Any]) -> str:
    changes = body.get("changes") or []
    if receipt.kind == ReceiptKind.USE:
        applied = [change for change in changes if change.get("applied")]
        stages = [str(change.get("stage")) for change in applied]
        counted = [f"{stage} {stages.count(stage)}" for stage in STAGES if stage in stages]
        return ", ".join(counted) or "nothing new"
    sums = sum(float(c.get("delta") or 0) for c in changes) or sum(
        float(c.get("reversed_delta") or 0) for c in changes
    )
    sign = "+" if receipt.kind == ReceiptKind.CONFIRMED else ui.formats.MINUS
    amount = ui.score(sums)
    edges = (
        f"{sign}{amount} on {len(changes)} edge{'s' if len(changes) != 1 else ''}" if changes else "no edge"
    )
    return f"{OUTCOME_WORDS[receipt.kind]}, {edges}"
