"""The context of a receipt: its entries with their cost, and its text only as it was packed, for a reason."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import clock, ui
from apps.core.admin import Done, GovernedAction, Preview, ReasonForm, holds
from apps.core.problems import Problem
from apps.retrieval.admin import parts
from apps.retrieval.models import Receipt
from apps.retrieval.packing import TIERS
from apps.retrieval.receipts.schemas import ReceiptDocument
from apps.retrieval.services import context_is_whole, reveal_context


class RevealContext(GovernedAction):
    name, path, label = "reveal", "<uuid:object_id>/reveal/", "Reveal context…"
    title = "Reveal the context"
    grants = ("reveal_text",)
    fill = "#context-text"

    @classmethod
    def button(cls, model_admin: Any, request: HttpRequest, obj: Any) -> ui.ActionButton | None:
        # It stands at the closed text, not among the actions of the page.
        return None

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = "Shows the context as it was packed, to you, in one answer. Who and why is kept."
        return Preview(summary, "Reveal 1 context", {"checksum": obj.checksum})

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        text = reveal_context(receipt_id=obj.pk, reason=data["reason"])
        return Done(f"Revealed by you at {clock.now():%H:%M:%S} UTC.", revealed=ui.LongText(text))


def context_of(
    model_admin: Any, request: HttpRequest, receipt: Receipt, document: ReceiptDocument
) -> SafeString:
    """What was packed, in its order, with its cost; what was left out, behind it."""
    packing = document.packing
    if packing is None:
        return SafeString('<p class="gv-subtle">No context was packed: the request asked for rows alone.</p>')
    facts = ui.Facts(
        [
            ui.Fact("tokens", f"{ui.count(packing.used_tokens)} of {ui.count(packing.token_budget)}"),
            ui.Fact("counted by", packing.tokenizer),
            ui.Fact("entries", len(packing.order)),
            ui.Fact("ordering", packing.ordering),
            ui.Fact("format", packing.format),
            ui.Fact("context hash", ui.short_hash(document.context_sha256, "context hash")),
        ]
    )
    columns = [
        ui.Column("place", "num"),
        ui.Column("entry", "main"),
        ui.Column("tier"),
        ui.Column("as"),
        ui.Column("tokens", "num"),
        ui.Column("rank", "num", later=True),
    ]
    table = ui.Records("Context entries", columns, list(_entries(document)), header=1)
    return format_html("{}{}{}", text_lock(model_admin, request, receipt), facts, table)


def _entries(document: ReceiptDocument) -> Iterator[ui.Record]:
    packing = document.packing
    assert packing is not None
    names = parts.node_names(UUID(each.node_id) for each in document.candidates)
    tiers = [tier for tier, count in zip(TIERS, packing.tiers, strict=True) for _ in range(count)]
    for place, (index, tier) in enumerate(zip(packing.order, tiers, strict=True), start=1):
        each = document.candidates[index]
        name = parts.named(UUID(each.node_id), names)
        yield ui.Record(
            [place, name, tier.replace("_", " "), each.representation, ui.count(each.token_cost), index + 1]
        )
    for index, each in enumerate(document.candidates):
        if not each.in_context:
            nothing = ui.nothing("not in the context")
            name = parts.named(UUID(each.node_id), names)
            yield ui.Record([nothing, name, "left out", nothing, nothing, index + 1], tone="quiet")


def text_lock(model_admin: Any, request: HttpRequest, receipt: Receipt) -> SafeString:
    """The packed text, closed; or why nobody can be shown it any more."""
    may = holds(request, receipt, *RevealContext.grants)
    if may and not _is_whole(receipt):
        return SafeString('<p class="gv-subtle">Texts changed since; the packed context can\'t be shown.</p>')
    url = model_admin.url(RevealContext.name, receipt.pk) if may else ""
    return format_html('<p id="context-text">{}</p>', ui.Lock("context closed", url))


def _is_whole(receipt: Receipt) -> bool:
    try:
        return context_is_whole(receipt_id=receipt.pk)
    except Problem:
        # The verdicts over the page say why.
        return False
