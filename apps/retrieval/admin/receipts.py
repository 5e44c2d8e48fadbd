"""Native receipts: verdicts first, then the weights, then every row with what made its score."""

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.core.admin import ModelAdmin, PrincipalFilter, WindowFilter, choice_filter
from apps.core.admin.changelist import KeysetChangeList
from apps.retrieval.admin import parts
from apps.retrieval.admin.contexts import RevealContext, context_of
from apps.retrieval.admin.receipt_parts import (
    PROFILE_WORDS,
    candidates_of,
    details_of,
    receipt_facts,
    trace_id,
    weights_of,
)
from apps.retrieval.models import Receipt
from apps.retrieval.receipts.schemas import ReceiptDocument
from apps.retrieval.verdicts import native_verdict

ARRAYS = (
    "node_ids",
    "scores",
    "features",
    "raw",
    "channels",
    "weight_rows",
    "weights",
    "step_rows",
    "step_kinds",
    "step_values",
)


class ReceiptWindow(WindowFilter):
    default = "24h"


PROFILE = choice_filter("profile", "profile", PROFILE_WORDS.items(), field="profile_status")
MODE = choice_filter("mode", "mode", [("search", "search"), ("context", "context")])
FORMULA = choice_filter("formula", "formula", [("weighted", "weighted"), ("rank_fusion", "rank fusion")])


@admin.register(Receipt)
class ReceiptAdmin(ModelAdmin):
    """Receipts by time, each with the trace that it is of."""

    list_name = "retrieval receipts"
    list_display = ("time", "first_row", "of_what", "whose", "ranking")
    list_select_related = ("principal",)
    list_filter = (ReceiptWindow, PROFILE, MODE, FORMULA, PrincipalFilter)
    keyset = ("-recorded_at", "-id")
    page_template = "retrieval/receipt_page.html"
    governed = (RevealContext,)

    def list_rows(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        listed: QuerySet[Any] = super().list_rows(request, rows)
        counted: QuerySet[Any] = listed.annotate(
            num_candidates=F("node_ids__len"), first_node=F("node_ids__0")
        )
        return counted.defer(*self.closed_columns(), *ARRAYS)

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        """Names of what came first in the receipts of the page, in one query."""
        names = parts.node_names(row.first_node for row in rows if row.first_node)
        for row in rows:
            row.first_name = parts.named(row.first_node, names) if row.first_node else None

    @admin.display(description="time")
    def time(self, obj: Receipt) -> SafeString:
        return ui.when(obj.recorded_at)

    @admin.display(description="first candidate, and how many more")
    def first_row(self, obj: Any) -> SafeString:
        if obj.first_name is None:
            return format_html('<span class="gv-main gv-subtle">– {}</span>', "zero hit")
        more = f" +{obj.num_candidates - 1}" if obj.num_candidates > 1 else ""
        return format_html('<span class="gv-main">{}{}</span>', obj.first_name, more)

    @admin.display(description="of")
    def of_what(self, obj: Receipt) -> SafeString:
        home = trace_id(obj, copy=False) if obj.trace_id else ui.nothing("no trace")
        return format_html('<span class="gv-id">{} {}</span>', obj.mode, home)

    @admin.display(description="principal")
    def whose(self, obj: Receipt) -> SafeString:
        return format_html("{}", obj.principal.display_name or ui.formats.middle_cut(obj.principal.subject))

    @admin.display(description="ranking")
    def ranking(self, obj: Receipt) -> Any:
        """What is not base scoring by the weighted formula."""
        status, formula = (
            obj.profile_status,
            "" if obj.formula == "weighted" else obj.formula.replace("_", " "),
        )
        if status == "inapplicable":
            return format_html("{} {}", ui.Mark("warn", "profile inapplicable"), formula)
        words = {"applied": "profile applied", "request_override": "set by request"}.get(status, "")
        if not (words or formula):
            return ui.nothing("base scoring")
        return format_html('<span class="gv-id">{}</span>', ", ".join(filter(None, (words, formula))))

    def object_title(self, obj: Any) -> str:
        text = str(obj.pk)
        return f"Retrieval receipt {text[:4]}…{text[-7:]}"

    def empty_state(self, changelist: KeysetChangeList) -> ui.EmptyState:
        longer = SafeString('<a class="gv-button" href="?window=7d">Last 7 days</a>')
        why = "Each recorded search writes one, with its trace."
        return ui.EmptyState("No receipt in this window.", why, longer)

    def page_context(self, request: HttpRequest, obj: Receipt) -> dict[str, Any]:
        return receipt_page(self, request, obj)

    # Canonical bytes -----------------------------------------------------------------------------------------

    def document_view(self, request: HttpRequest, object_id: UUID) -> HttpResponse:
        """The bytes that the checksum is taken over, as a file. They hold no words of a query."""
        row = self.get_object(request, str(object_id))
        if request.method not in ("GET", "HEAD") or row is None or not self.has_view_permission(request, row):
            raise Http404
        response = HttpResponse(row.document.encode(), content_type="application/json")
        response["Content-Disposition"] = f'attachment; filename="receipt-{row.pk}.json"'
        response["Cache-Control"] = "no-store"
        response["X-Content-Type-Options"] = "nosniff"
        return response

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.document_view)
        own = path("<uuid:object_id>/document/", view, name="retrieval_receipt_document")
        return [own, *super().get_urls()]


def receipt_page(model_admin: ReceiptAdmin, request: HttpRequest, receipt: Receipt) -> dict[str, Any]:
    """Everything of the page beyond title, actions and audit."""
    verdict = native_verdict(receipt)
    document = verdict.document
    newer, older = neighbours(model_admin, receipt)
    context: dict[str, Any] = {
        "notices": parts.verdict_notices(verdict),
        "facts": receipt_facts(receipt, verdict, model_admin.url("document", receipt.pk)),
        "newer_url": newer,
        "older_url": older,
        "sections": [],
    }
    if not isinstance(document, ReceiptDocument):
        return context
    context["sections"] = [
        ui.Section(
            title=_weights_title(at, document), anchor=f"weights-{at}", content=weights_of(each, document)
        )
        for at, each in enumerate(document.weights)
    ]
    note = f"{len(document.candidates)} returned, {document.omitted} scored beside them"
    context["sections"] += [
        ui.Section(
            title="Candidates by rank",
            anchor="candidates",
            content=candidates_of(document, verdict),
            note=note,
        ),
        ui.Section(
            title="Context", anchor="context", content=context_of(model_admin, request, receipt, document)
        ),
    ]
    context["key"] = ui.FeatureKey()
    context["details"] = details_of(document)
    return context


def _weights_title(at: int, document: ReceiptDocument) -> str:
    return "Applied weights" if len(document.weights) == 1 else f"Applied weights {at + 1}"


def neighbours(model_admin: ReceiptAdmin, receipt: Receipt) -> tuple[str, str]:
    """The next newer and older receipt of the workspace, two probes of one index."""
    rows = Receipt.objects.filter(workspace_id=receipt.workspace_id)
    at = receipt.recorded_at
    newer = rows.filter(recorded_at__gt=at).order_by("recorded_at", "id").values_list("pk", flat=True).first()
    older = (
        rows.filter(recorded_at__lt=at).order_by("-recorded_at", "-id").values_list("pk", flat=True).first()
    )
    return (
        model_admin.url("change", newer) if newer else "",
        model_admin.url("change", older) if older else "",
    )
