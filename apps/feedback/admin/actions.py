"""What staff may do to a trace: reveal its query, hold it, erase it, reverse an outcome.

The services act as the principal through `act_for` and write the audit entry in the same transaction.
"""

from typing import Any

from django import forms
from django.http import Http404, HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from apps.core import clock, ui
from apps.core.admin import BulkAction, Done, GovernedAction, Preview, ReasonForm, RevealAction
from apps.feedback.credits import edge_of
from apps.feedback.models import CitationSet, Credit, Judgment
from apps.feedback.services.staff import preview_reversal, reverse_outcome
from apps.operations.admin.holds import PlaceHold
from apps.traces.models import ActionReceipt, ReceiptKind, Trace, TraceSource, Use
from apps.traces.services.staff import erase_trace_of_principal, reveal_query


def reveal(trace: Trace, reason: str) -> Any:
    """The query of a trace for this answer alone. Never stored anywhere else."""
    found = reveal_query(trace_id=trace.pk, reason=reason)
    if found.text is not None:
        return ui.LongText(found.text)
    if found.erased_at:
        return format_html("Erased at {}.", ui.when(found.erased_at))
    return "Not kept: the text filter refused it, or the call had none."


class RevealQuery(RevealAction):
    label, title = "Reveal query…", "Reveal the query"
    fill = "#query"

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = "Shows what was asked, to you, in one answer. Who revealed it and why is kept."
        return Preview(summary, "Reveal 1 query", {"erased": str(bool(obj.query_erased_at))})

    def text_of(self, obj: Any, reason: str) -> Any:
        return reveal(obj, reason)


class RevealQueries(BulkAction):
    name, path, label = "reveal_selected", "reveal-selected/", "Reveal queries of the selected rows…"
    title = "Reveal queries"
    grants = ("reveal_text",)

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        rows = self.selected(request)
        asked = len(request.POST.getlist("_selected_action"))
        erased = sum(1 for row in rows if row.query_erased_at)
        state = {"selected": str(asked), "may be revealed": str(len(rows)), "erased": str(erased)}
        counts = ui.Facts(
            [
                ui.Fact("will be shown", len(rows) - erased),
                ui.Fact("erased already", erased),
                ui.Fact("refused", f"{asked - len(rows)}, no grant or not there"),
            ]
        )
        return Preview(
            "One reason for all; one audit entry for each.",
            f"Reveal {len(rows) - erased} queries",
            state,
            [counts],
        )

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        shown = []
        for trace in self.selected(request):
            text = reveal(trace, data["reason"])
            shown.append((ui.when(trace.recorded_at), ui.short_id(trace.pk, "trace id"), text))
        listed = format_html(
            '<dl class="gv-stack">{}</dl>', format_html_join("", "<dt>{} {}</dt><dd>{}</dd>", shown)
        )
        return Done(f"{len(shown)} queries revealed by you at {clock.now():%H:%M:%S} UTC.", revealed=listed)


class HoldTrace(PlaceHold):
    held_kind = "traces.trace"


class EraseTrace(GovernedAction):
    name, path, label, kind = "erase", "<uuid:object_id>/erase/", "Erase…", "danger-link"
    title = "Erase the trace"
    grants = ("review_retention",)

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        counts = {
            "trace": 1,
            "sources": TraceSource.objects.filter(trace_id=obj.pk).count(),
            "uses": Use.objects.filter(trace_id=obj.pk).count(),
            "action receipts": ActionReceipt.objects.filter(trace_id=obj.pk).count(),
            "credits, taken back": Credit.objects.filter(trace_id=obj.pk).count(),
            "judgments": Judgment.objects.filter(receipt_id=obj.retrieval_receipt_id).count(),
            "citations": CitationSet.objects.filter(receipt_id=obj.retrieval_receipt_id).count(),
        }
        rows = [ui.Record([name, ui.count(number)]) for name, number in counts.items()]
        table = ui.Records("What goes", [ui.Column("rows of", "main"), ui.Column("number", "num")], rows)
        total = sum(counts.values())
        return Preview(
            f"Deletes {total} rows, with its retrieval receipt. Not reversible.",
            f"Erase {total} rows",
            {name: str(number) for name, number in counts.items()},
            [table],
            total,
            irreversible=True,
        )

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        erase_trace_of_principal(trace_id=obj.pk, reason=data["reason"])
        return Done(f"Erased {preview.size} rows.", self.model_admin.url("changelist"))


class ReversalForm(ReasonForm):
    outcome = forms.ChoiceField(
        label="As",
        choices=[
            ("corrected", "corrected: the evidence was wrong"),
            ("rolled_back", "rolled back: the step was undone"),
        ],
        initial="corrected",
        widget=forms.RadioSelect,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.order_fields(["outcome", "reason"])


class ReverseOutcome(GovernedAction):
    """Takes back what one confirmation still lends; later confirmations stay."""

    name, path, label, kind = "reverse", "<uuid:object_id>/reverse/<uuid:receipt_id>/", "Reverse…", "danger"
    grants = ("curate",)
    form_class = ReversalForm
    stands_elsewhere = True  # at the confirmation in the timeline

    def get_object(self, request: HttpRequest, object_id: str = "", **kwargs: Any) -> Any:
        trace = super().get_object(request, object_id)
        receipts = ActionReceipt.objects.defer("reason").filter(trace_id=trace.pk, kind=ReceiptKind.CONFIRMED)
        found = receipts.filter(pk=kwargs["receipt_id"]).first()
        if found is None:
            raise Http404
        self.receipt: ActionReceipt = found
        return trace

    def heading(self, obj: Any) -> str:
        return f"Reverse the outcome of receipt {str(self.receipt.pk)[-7:]}"

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        seen = preview_reversal(receipt_id=self.receipt.pk)
        edges = [edge for edge in seen.edges if edge.active]
        rows = [
            ui.Record(
                [
                    edge_name(edge.edge_key),
                    ui.score(edge.strength),
                    ui.signed(-edge.removed, 4),
                    ui.score(edge.after),
                ]
            )
            for edge in edges
        ]
        columns = [
            ui.Column("edge", "main"),
            *(ui.Column(name, "num") for name in ("now", "removed", "after")),
        ]
        table = ui.Records(
            "Edges that lose strength", columns, rows, empty=SafeString("<p>No active credit.</p>")
        )
        who = obj.principal.display_name or obj.principal.subject
        touched = _number(len(edges), "edge")
        summary = f"Touches {touched} of principal {who}, 1 trace. A reversal is not reversible."
        state = {edge_name(key): _state_words(rest) for key, *rest in seen.state}
        return Preview(
            summary, f"Reverse {_number(len(edges), 'credit')}", state, [table], bound=seen.version
        )

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        answer = reverse_outcome(
            receipt_id=self.receipt.pk,
            kind=ReceiptKind(data["outcome"]),
            reason=data["reason"],
            version=preview.version,
        )
        return Done(f"Reversed {_number(len(answer['changes']), 'credit')}.")


def _number(of: int, what: str) -> str:
    return f"{of} {what}{'' if of == 1 else 's'}"


def _state_words(stored: list[Any]) -> str:
    """A credit and its edge as stored: what the preview was made from."""
    active, strength, written = stored
    credit = "active" if active else "reversed already"
    return f"{credit}, strength {strength:.10f} as of {written or 'never'}"


def edge_name(key: str) -> str:
    """`acme/app: start → keys (mention)`."""
    edge = edge_of(key)
    return f"{edge['repo']}: {edge['src']} → {edge['dst']} ({edge['kind']})"
