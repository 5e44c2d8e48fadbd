"""The context of a receipt: which entries it has, what each cost, and its text behind a reason."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.core.admin import Preview, ReasonForm, RevealAction
from apps.core.problems import Problem
from apps.retrieval.admin import parts
from apps.retrieval.models import Receipt
from apps.retrieval.packing import TIERS
from apps.retrieval.receipts.schemas import CandidateRecord, PackingRecord, ReceiptDocument
from apps.retrieval.services import context_is_whole, reveal_context


class RevealContext(RevealAction):
    label, title = "Reveal context…", "Reveal the context"
    fill = "#packed"

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = (
            "Renders the context again from the present texts and shows it to you in one answer, if it still is what "
            "was packed. Who revealed it and why is kept."
        )
        return Preview(summary, "Reveal 1 context", {"checksum": obj.checksum})

    def text_of(self, obj: Any, reason: str) -> ui.LongText:
        return ui.LongText(reveal_context(receipt_id=obj.pk, reason=reason))


def context_of(model_admin: Any, request: HttpRequest, receipt: Receipt, document: ReceiptDocument) -> Any:
    """What was packed in the order of the text, each entry with its cost; then what was not."""
    packing = document.packing
    if packing is None:
        return SafeString('<p class="gv-subtle">No context was packed: the request asked for rows alone.</p>')
    columns = [
        ui.Column("#", "num"),
        ui.Column("entry", "main"),
        ui.Column("tier"),
        ui.Column("as"),
        ui.Column("tokens", "num"),
        ui.Column("rank", "num", later=True),
    ]
    table = ui.Records("Context entries", columns, _entries(document, packing), header=1)
    return format_html("{}{}{}", text_lock(model_admin, request, receipt), _facts(document, packing), table)


def text_lock(model_admin: Any, request: HttpRequest, receipt: Receipt) -> SafeString:
    """The packed text, closed; or, to who might be shown it, why nobody can any more."""
    if RevealContext.permitted(model_admin, request, receipt) and not _is_whole(receipt):
        return SafeString('<p class="gv-subtle">Texts changed since; the packed context can\'t be shown.</p>')
    return RevealContext.lock(model_admin, request, receipt, "text closed")


def _is_whole(receipt: Receipt) -> bool:
    try:
        return context_is_whole(receipt_id=receipt.pk)
    except Problem:
        # The verdicts over the page say why.
        return False


def _facts(document: ReceiptDocument, packing: PackingRecord) -> ui.Facts:
    budget = f"{ui.count(packing.used_tokens)} of {ui.count(packing.token_budget)}"
    ordered = f"{packing.ordering}, {packing.format}, guidance {packing.guidance}"
    return ui.Facts(
        [
            ui.Fact("tokens", f"{budget}, counted by {packing.tokenizer}"),
            ui.Fact("entries", f"{len(packing.order)} of {len(document.candidates)} candidates"),
            ui.Fact("packed", f"{ordered}; {document.policy.packing}"),
            ui.Fact("context hash", ui.short_hash(document.context_sha256 or "", "context hash")),
        ]
    )


def _entries(document: ReceiptDocument, packing: PackingRecord) -> list[ui.Record]:
    names = parts.node_names(UUID(each.node_id) for each in document.candidates)
    tiers = [tier for tier, count in zip(TIERS, packing.tiers, strict=True) for _ in range(count)]
    inside = [
        ui.Record(
            [
                number,
                parts.named(UUID(document.candidates[place].node_id), names),
                tier.replace("_", "-"),
                _as(document.candidates[place]),
                ui.count(document.candidates[place].token_cost, absent="not counted"),
                place + 1,
            ]
        )
        for number, (place, tier) in enumerate(zip(packing.order, tiers, strict=True), 1)
    ]
    outside = [
        ui.Record(
            ["–", parts.named(UUID(each.node_id), names), "", ui.nothing("left out"), "", rank], tone="quiet"
        )
        for rank, each in enumerate(document.candidates, 1)
        if not each.in_context
    ]
    return inside + outside


def _as(candidate: CandidateRecord) -> str:
    return "whole" if candidate.representation == "full" else "reference, no text"
