"""Context ablations: what a context is without an entry, and what that entry was worth to an answer."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.core.admin import ModelAdmin, Preview, ReasonForm, RevealAction, TextFilter
from apps.feedback.models import Ablation, PresenceAssessment, PresenceTier
from apps.feedback.services.staff import reveal_counterfactual

MOST_ASSESSMENTS = 200
TIER_WORDS = {
    PresenceTier.LOAD_BEARING: "load-bearing",
    PresenceTier.CITED_NON_FLIPPING: "cited, made no difference",
    PresenceTier.MISLEADING: "misleading",
    PresenceTier.CITED_WRONG_NONCURING: "cited, wrong either way",
}


class ReceiptFilter(TextFilter):
    title = "receipt"
    parameter_name = "receipt"
    field = "receipt_id"
    hint = "id"


class RevealCounterfactual(RevealAction):
    label, title = "Reveal text…", "Reveal what remains of the context"
    fill = "#remaining"

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = (
            "Renders the context again from the present texts, without the entries taken out, and shows it to you in "
            "one answer. Who revealed it and why is kept."
        )
        return Preview(summary, "Reveal 1 text", {"hash": obj.counterfactual_sha256})

    def text_of(self, obj: Any, reason: str) -> ui.LongText:
        return ui.LongText(reveal_counterfactual(ablation_id=obj.pk, reason=reason))


@admin.register(Ablation)
class AblationAdmin(ModelAdmin):
    list_name = "context ablations"
    list_display = ("removed", "whose", "worth", "tokens", "time")
    list_select_related = ("principal",)
    list_filter = (ReceiptFilter,)
    keyset = ("-admitted_at", "-id")
    page_template = "core/page.html"
    governed = (RevealCounterfactual,)

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        """Assessments of all ablations of the page in one query."""
        by_id = {row.pk: row for row in rows}
        for row in rows:
            row.tiers = []
        found = PresenceAssessment.objects.filter(ablation_id__in=by_id).order_by("admitted_at", "id")
        for ablation_id, tier in found.values_list("ablation_id", "tier"):
            by_id[ablation_id].tiers.append(PresenceTier(tier))

    @admin.display(description="entries taken out")
    def removed(self, obj: Ablation) -> SafeString:
        names = ", ".join(f"…{str(node)[-7:]}" for node in obj.node_ids[:3])
        more = f" +{len(obj.node_ids) - 3}" if len(obj.node_ids) > 3 else ""
        return format_html('<span class="gv-main">{}{}</span>', names, more)

    @admin.display(description="principal")
    def whose(self, obj: Ablation) -> SafeString:
        return format_html("{}", obj.principal.display_name or ui.formats.middle_cut(obj.principal.subject))

    @admin.display(description="worth")
    def worth(self, obj: Any) -> Any:
        if not obj.tiers:
            return ui.nothing("not assessed")
        last = obj.tiers[-1]
        words = f"{TIER_WORDS[last]}{f' and {len(obj.tiers) - 1} more' if len(obj.tiers) > 1 else ''}"
        return ui.Mark("warn", words) if last == PresenceTier.MISLEADING else words

    @admin.display(description="tokens before → after")
    def tokens(self, obj: Ablation) -> str:
        return f"{ui.count(obj.baseline_tokens)} → {ui.count(obj.counterfactual_tokens)}"

    @admin.display(description="time")
    def time(self, obj: Ablation) -> SafeString:
        return ui.when(obj.admitted_at)

    def object_title(self, obj: Any) -> str:
        entries = "1 entry" if len(obj.node_ids) == 1 else f"{len(obj.node_ids)} entries"
        return f"Context without {entries}"

    def empty_why(self) -> str:
        return "No ablation yet. They come through POST /v1/receipts/{id}/ablations."

    def page_context(self, request: HttpRequest, obj: Ablation) -> dict[str, Any]:
        facts = [
            ui.Fact("taken out", ui.when(obj.admitted_at)),
            ui.Fact("ablation", ui.short_id(obj.pk, "ablation id", main=True)),
            ui.Fact("principal", ui.person(obj.principal.display_name, obj.principal.subject)),
            ui.Fact("retrieval receipt", ui.short_id(obj.receipt_id, "receipt id")),
            ui.Fact("tokens", f"{self.tokens(obj)}, counted by {obj.tokenizer}"),
            ui.Fact("context", ui.short_id(obj.baseline_sha256, "hash of the context")),
            ui.Fact("remaining", ui.short_id(obj.counterfactual_sha256, "hash of what remains")),
        ]
        return {
            "lead": RevealCounterfactual.lock(self, request, obj, "text closed"),
            "facts": ui.Facts(facts, first=True),
            "sections": [
                ui.Section(title="Taken out", anchor="removed", content=entries_of(obj)),
                ui.Section(
                    title="What it was worth",
                    anchor="worth",
                    content=assessments_of(obj),
                    note="by the application's own evaluation; nothing ranks by it",
                ),
            ],
        }


def entries_of(ablation: Ablation) -> ui.Records:
    """The entries that were taken out, in the order of the context."""
    rows = [
        ui.Record([ui.short_id(node, "node id"), ui.count(cost)])
        for node, cost in zip(ablation.node_ids, ablation.token_costs, strict=True)
    ]
    return ui.Records("Entries taken out", [ui.Column("node", "main"), ui.Column("tokens", "num")], rows)


def assessments_of(ablation: Ablation) -> ui.Records:
    """The assessments of an ablation, newest first."""
    found = PresenceAssessment.objects.filter(ablation_id=ablation.pk).order_by("-admitted_at", "-id")
    rows = []
    for each in found[:MOST_ASSESSMENTS]:
        tier = PresenceTier(each.tier)
        rows.append(
            ui.Record(
                [
                    TIER_WORDS[tier],
                    ui.signed(tier.weight, 1),
                    "right" if each.baseline_correct else "wrong",
                    "right" if each.counterfactual_correct else "wrong",
                    each.evaluation_id,
                    ui.when(each.admitted_at),
                ]
            )
        )
    columns = [
        ui.Column("tier", "main"),
        ui.Column("weight", "num"),
        ui.Column("answer with it"),
        ui.Column("without"),
        ui.Column("evaluation", later=True),
        ui.Column("recorded", later=True),
    ]
    return ui.Records("Assessments", columns, rows, empty=ui.EmptyState("Not assessed.", level=3))
