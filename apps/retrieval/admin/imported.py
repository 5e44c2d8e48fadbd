"""Receipts that PRME wrote: their verdict, their rows by rank, and no word of their query before it is revealed."""

from typing import Any

from django.contrib import admin
from django.db.models import Count
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.core.admin import (
    ModelAdmin,
    Preview,
    PrincipalFilter,
    ReasonForm,
    RevealAction,
    TextFilter,
    WindowFilter,
    choice_filter,
)
from apps.operations.admin.holds import PlaceHold
from apps.retrieval.admin import parts
from apps.retrieval.admin.imported_parts import (
    candidates_of,
    context_of,
    details_of,
    imported_facts,
    labels_of,
)
from apps.retrieval.exceptions import UnknownReceipt
from apps.retrieval.models import PRME_HOLD, PrmeLabelRecord, PrmeReceipt
from apps.retrieval.prme.documents import ReceiptDocument
from apps.retrieval.services import examine_imported, reveal_imported
from apps.retrieval.verdicts import Verdict


class ImportWindow(WindowFilter):
    default = "all"
    field = "imported_at"


class RequestFilter(TextFilter):
    title = "request"
    parameter_name = "request_id"
    hint = "id of PRME"


FORMULA = choice_filter(
    "formula",
    "formula",
    [("weighted", "weighted"), ("rank_fusion", "rank fusion"), ("none", "cannot be replayed")],
)


class RevealDocument(RevealAction):
    label, title = "Reveal document…", "Reveal the document"
    fill = "#query"

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = (
            "Shows the receipt as it came, its query included, to you, in one answer. Who and why is kept."
        )
        return Preview(summary, "Reveal 1 document", {"checksum": obj.checksum})

    def text_of(self, obj: Any, reason: str) -> ui.LongText:
        return ui.LongText(reveal_imported(receipt_id=obj.pk, reason=reason))


class HoldReceipt(PlaceHold):
    held_kind = PRME_HOLD


@admin.register(PrmeReceipt)
class PrmeReceiptAdmin(ModelAdmin):
    list_name = "imported receipts"
    list_display = ("time", "asked", "whose", "version", "used", "rows", "labels")
    list_select_related = ("principal",)
    list_filter = (ImportWindow, FORMULA, RequestFilter, PrincipalFilter)
    keyset = ("-imported_at", "-id")
    page_template = "retrieval/receipt_page.html"
    governed = (RevealDocument, HoldReceipt)

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        """Label records of all receipts of the page in one query."""
        found = PrmeLabelRecord.objects.filter(receipt_id__in=[row.pk for row in rows])
        counts = dict(found.values_list("receipt_id").annotate(number=Count("pk")))
        for row in rows:
            row.num_labels = counts.get(row.pk, 0)

    @admin.display(description="imported")
    def time(self, obj: PrmeReceipt) -> SafeString:
        return ui.when(obj.imported_at)

    @admin.display(description="request")
    def asked(self, obj: PrmeReceipt) -> SafeString:
        return format_html('<span class="gv-main"><code>{}</code></span>', obj.request_id)

    @admin.display(description="principal")
    def whose(self, obj: PrmeReceipt) -> SafeString:
        return format_html("{}", obj.principal.display_name or ui.formats.middle_cut(obj.principal.subject))

    @admin.display(description="schema")
    def version(self, obj: PrmeReceipt) -> int:
        return obj.schema_version

    @admin.display(description="formula")
    def used(self, obj: PrmeReceipt) -> Any:
        return obj.formula.replace("_", " ") if obj.can_replay else ui.nothing("cannot be replayed")

    @admin.display(description="candidates")
    def rows(self, obj: PrmeReceipt) -> SafeString:
        return ui.count(obj.candidate_count)

    @admin.display(description="label records")
    def labels(self, obj: Any) -> Any:
        return ui.count(obj.num_labels) if obj.num_labels else ui.nothing("no label")

    def object_title(self, obj: Any) -> str:
        text = str(obj.request_id)
        return f"Imported receipt {text[:4]}…{text[-7:]}"

    def empty_state(self, changelist: Any) -> ui.EmptyState:
        return ui.EmptyState(
            "No imported receipt.",
            "Receipts that PRME exported come through POST /v1/receipts/import, or from files:",
            command="manage.py import_prme FILE --workspace SLUG --principal SUBJECT",
        )

    def page_context(self, request: HttpRequest, obj: PrmeReceipt) -> dict[str, Any]:
        return imported_page(self, request, obj)


def imported_page(
    model_admin: PrmeReceiptAdmin, request: HttpRequest, receipt: PrmeReceipt
) -> dict[str, Any]:
    """Everything of the page beyond title, actions and audit. The document is read, its words are not shown."""
    try:
        verdict = examine_imported(receipt_id=receipt.pk)
    except UnknownReceipt:
        return _held_page(receipt)
    context: dict[str, Any] = {
        "lead": RevealDocument.lock(model_admin, request, receipt, "query and document closed"),
        "notices": parts.verdict_notices(verdict),
        "facts": imported_facts(receipt, verdict),
        "sections": [],
    }
    document = verdict.document
    if not isinstance(document, ReceiptDocument):
        return context
    context["sections"] = [
        ui.Section(
            title="Candidates by rank",
            anchor="candidates",
            content=candidates_of(document, verdict),
            note=f"{len(document.candidates)} returned",
        ),
        ui.Section(title="Context", anchor="context", content=context_of(document)),
        ui.Section(title="Label records", anchor="labels", content=labels_of(receipt)),
    ]
    context["key"] = ui.FeatureKey()
    context["details"] = details_of(document)
    return context


def _held_page(receipt: PrmeReceipt) -> dict[str, Any]:
    """Past its time it is nobody's to read; a hold alone keeps it."""
    notice = ui.Notice("held", "Past its time: a hold keeps it from being deleted, and nobody reads it.")
    return {"notices": [notice], "facts": imported_facts(receipt, Verdict(())), "sections": []}
