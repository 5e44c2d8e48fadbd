"""Native receipts: verdicts first, then the weights, then every row with what made its score."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import F, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import NoReverseMatch, URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.core.admin import ModelAdmin, TextFilter, WindowFilter, choice_filter
from apps.core.admin.changelist import KeysetChangeList
from apps.retrieval.admin import parts
from apps.retrieval.admin.contexts import RevealContext, context_of
from apps.retrieval.models import Receipt
from apps.retrieval.receipts.replay import raw_of, scores_by_step
from apps.retrieval.receipts.schemas import CandidateRecord, ReceiptDocument, WeightsRecord
from apps.retrieval.scoring import ranks_of
from apps.retrieval.verdicts import Verdict, native_verdict

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
PROFILE_WORDS = {
    "none": "none",
    "applied": "applied",
    "inapplicable": "inapplicable",
    "request_override": "overridden by the request",
}


class ReceiptWindow(WindowFilter):
    default = "24h"


class PrincipalFilter(TextFilter):
    title = "principal"
    parameter_name = "principal"
    field = "principal_id"
    hint = "id"


PROFILE = choice_filter("profile", "profile", PROFILE_WORDS.items(), field="profile_status")
MODE = choice_filter("mode", "mode", [("search", "search"), ("context", "context")])
FORMULA = choice_filter("formula", "formula", [("weighted", "weighted"), ("rank_fusion", "rank fusion")])


@admin.register(Receipt)
class ReceiptAdmin(ModelAdmin):
    """Receipts by time, each with the trace that it is of."""

    list_name = "retrieval receipts"
    list_display = ("time", "of_what", "whose", "profile", "formula_used", "rows")
    list_select_related = ("principal",)
    list_filter = (ReceiptWindow, PROFILE, MODE, FORMULA, PrincipalFilter)
    keyset = ("-recorded_at", "-id")
    page_template = "retrieval/receipt_page.html"
    governed = (RevealContext,)

    def list_rows(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        listed: QuerySet[Any] = super().list_rows(request, rows)
        counted: QuerySet[Any] = listed.annotate(num_candidates=F("node_ids__len"))
        return counted.defer(*self.closed_columns(), *ARRAYS)

    @admin.display(description="time")
    def time(self, obj: Receipt) -> SafeString:
        return ui.when(obj.recorded_at)

    @admin.display(description="of")
    def of_what(self, obj: Receipt) -> SafeString:
        home = trace_link(obj) if obj.trace_id else "without a trace"
        return format_html('<span class="gv-main">{} {}</span>', obj.mode, home)

    @admin.display(description="principal")
    def whose(self, obj: Receipt) -> SafeString:
        return format_html("{}", obj.principal.display_name or ui.formats.middle_cut(obj.principal.subject))

    @admin.display(description="profile")
    def profile(self, obj: Receipt) -> Any:
        words = PROFILE_WORDS[obj.profile_status]
        if obj.profile_status == "inapplicable":
            return ui.Mark("warn", words)
        return ui.nothing("base scoring") if obj.profile_status == "none" else words

    @admin.display(description="formula")
    def formula_used(self, obj: Receipt) -> str:
        return obj.formula.replace("_", " ")

    @admin.display(description="candidates")
    def rows(self, obj: Any) -> SafeString:
        return ui.count(obj.num_candidates)

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


def trace_link(receipt: Receipt) -> SafeString:
    href = reverse("admin:traces_trace_change", args=[receipt.trace_id])
    return format_html("of trace {}", ui.short_id(receipt.trace_id, "trace id", href=href))


def receipt_page(model_admin: ReceiptAdmin, request: HttpRequest, receipt: Receipt) -> dict[str, Any]:
    """Everything of the page beyond title, actions and audit."""
    verdict = native_verdict(receipt)
    document = verdict.document
    newer, older = neighbours(model_admin, receipt)
    context: dict[str, Any] = {
        "notices": parts.verdict_notices(verdict),
        "facts": receipt_facts(model_admin, receipt, verdict),
        "newer_url": newer,
        "older_url": older,
        "sections": [],
    }
    if not isinstance(document, ReceiptDocument):
        return context
    context["sections"] = [
        SimpleNamespace(
            title=_weights_title(at, document), anchor=f"weights-{at}", content=weights_of(each, document)
        )
        for at, each in enumerate(document.weights)
    ]
    note = f"{len(document.candidates)} returned, {document.omitted} scored beside them"
    context["sections"] += [
        SimpleNamespace(
            title="Candidates by rank",
            anchor="candidates",
            content=candidates_of(document, verdict),
            note=note,
        ),
        SimpleNamespace(
            title="Context", anchor="context", content=context_of(model_admin, request, receipt, document)
        ),
    ]
    context["key"] = ui.FeatureKey()
    context["details"] = details_of(document)
    return context


def _weights_title(at: int, document: ReceiptDocument) -> str:
    return "Applied weights" if len(document.weights) == 1 else f"Applied weights {at + 1}"


def receipt_facts(model_admin: ReceiptAdmin, receipt: Receipt, verdict: Verdict) -> ui.Facts:
    facts = [*parts.verdict_facts(verdict), ui.Fact("profile", profile_of(receipt, verdict.document))]
    href = model_admin.url("document", receipt.pk)
    facts += [
        ui.Fact("recorded", ui.when(receipt.recorded_at)),
        ui.Fact("receipt", ui.short_id(receipt.pk, "receipt id", main=True)),
        ui.Fact("of", trace_link(receipt) if receipt.trace_id else _home(verdict.document)),
        ui.Fact("principal", ui.person(receipt.principal.display_name, receipt.principal.subject)),
        ui.Fact("mode", receipt.mode),
        ui.Fact("scopes", ", ".join(receipt.scopes) if receipt.scopes else "all of the principal's"),
        ui.Fact("formula", receipt.formula.replace("_", " ")),
        ui.Fact("scoring policy", policy_of(receipt, verdict.document)),
        ui.Fact("scorer contract", receipt.contract),
        ui.Fact("checksum", ui.short_hash(receipt.checksum, "checksum")),
        ui.Fact("canonical bytes", format_html('<a href="{}" download>Download</a>', href)),
    ]
    return ui.Facts(facts, first=True)


def _home(document: Any) -> Any:
    if isinstance(document, ReceiptDocument) and document.request.query.home == "query_set":
        return format_html("query set {}", ui.short_id(document.request.query.id, "query set id"))
    return "a trace that is gone"


def profile_of(receipt: Receipt, document: Any) -> Any:
    """Status, profile and reason; base scoring is the normal case."""
    words = PROFILE_WORDS[receipt.profile_status]
    shown: Any = ui.Mark("warn", words) if receipt.profile_status == "inapplicable" else words
    if receipt.profile_id:
        shown = format_html(
            "{} {}",
            shown,
            ui.short_id(receipt.profile_id, "profile id", href=_profile_page(receipt.profile_id)),
        )
    if isinstance(document, ReceiptDocument) and document.profile.reason:
        shown = format_html("{} <span class='gv-subtle'>{}</span>", shown, document.profile.reason)
    return shown


def _profile_page(profile_id: UUID) -> str:
    try:
        return reverse("admin:learning_rankingprofile_change", args=[profile_id])
    except NoReverseMatch:
        return ""


def policy_of(receipt: Receipt, document: Any) -> Any:
    if not isinstance(document, ReceiptDocument):
        return ui.nothing("not readable")
    version, digest = document.policy.version, ui.short_hash(document.policy.sha256, "policy hash")
    if receipt.policy_id is None:
        return format_html("not stored, {}", digest)
    href = reverse("admin:core_storedpolicy_change", args=[receipt.policy_id])
    return format_html('<a href="{}">version {}</a>, {}', href, version, digest)


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


# Weights -----------------------------------------------------------------------------------------------------


def weights_of(vector: WeightsRecord, document: ReceiptDocument) -> Any:
    """Applied against base weights: as bars where they differ, always as a table."""
    names = document.weight_names
    rows = list(zip(names, vector.base, vector.multipliers, vector.applied, strict=True))
    columns = [
        ui.Column("feature", "main"),
        *(ui.Column(n, "num") for n in ("base", "multiplier", "applied")),
    ]
    table = ui.Records(
        "Weights",
        columns,
        [
            ui.Record([name, ui.score(base), f"× {multiplier:.2f}", ui.score(applied)])
            for name, base, multiplier, applied in rows
        ],
        wide=True,
    )
    if all(multiplier == 1.0 for multiplier in vector.multipliers):
        return format_html('<p class="gv-subtle">As the policy has them: every multiplier is 1.</p>{}', table)
    ratios = [(name, applied / base) for name, base, _, applied in rows if base > 0]
    return format_html("{}{}", ui.Multipliers(ratios, "Applied weight against base weight"), table)


# Candidates --------------------------------------------------------------------------------------------------


def candidates_of(document: ReceiptDocument, verdict: Verdict) -> ui.Records:
    names = parts.node_names(UUID(each.node_id) for each in document.candidates)
    scale = max((_widest(document, each) for each in document.candidates), default=0.0)
    columns = [
        ui.Column("#", "num"),
        ui.Column("candidate", "main"),
        ui.Column("score", "num"),
        ui.Column("what made the score"),
        ui.Column("channels", "num", later=True),
    ]
    rows = [
        _candidate_row(document, rank, each, replayed, names, scale)
        for rank, (each, replayed) in enumerate(
            zip(document.candidates, verdict.scores, strict=True), start=1
        )
    ]
    empty = ui.EmptyState("Zero hit.", "Nothing was returned, and that was recorded.", level=3)
    return ui.Records("Candidates by rank", columns, rows, header=1, empty=empty)


def _widest(document: ReceiptDocument, candidate: CandidateRecord) -> float:
    """The sum before factors took from it, or the score where steps added more: bars of all rows fit in it."""
    return max(candidate.score, sum(share for *_, share in contributions_of(document, candidate)))


def _candidate_row(
    document: ReceiptDocument,
    rank: int,
    candidate: CandidateRecord,
    replayed: float,
    names: Mapping[UUID, str],
    scale: float,
) -> ui.Record:
    steps = steps_of(document, candidate)
    added = contributions_of(document, candidate)
    return ui.Record(
        [
            rank,
            parts.named(UUID(candidate.node_id), names),
            ui.score(candidate.score),
            parts.score_bar([(name, value) for name, *_, value in added], steps, scale),
            candidate.channels,
        ],
        more=_candidate_more(document, rank, candidate, replayed, steps, added),
        tone="" if candidate.score == replayed else "bad",
    )


def steps_of(document: ReceiptDocument, candidate: CandidateRecord) -> list[parts.Step]:
    scores = scores_by_step(document, candidate)
    return [
        parts.Step(each.kind, each.coefficient, before, after, each.source)
        for each, before, after in zip(candidate.adjustments, scores, scores[1:], strict=False)
    ]


def contributions_of(
    document: ReceiptDocument, candidate: CandidateRecord
) -> list[tuple[str, float | int | None, float, float]]:
    """(name, feature or rank, applied weight, what it added) in the order of the formula."""
    applied = document.weights[candidate.weights].applied
    if document.policy.formula == "weighted":
        values = zip(document.weight_names, candidate.features, applied, strict=True)
        return [(name, value, weight, weight * value) for name, value, weight in values]
    ranks, k = ranks_of(raw_of(candidate)), document.policy.fusion_k
    return [
        (name, ranks[name], weight, weight / (k + rank) if (rank := ranks[name]) is not None else 0.0)
        for name, weight in zip(document.weight_names, applied, strict=True)
    ]


def _candidate_more(
    document: ReceiptDocument,
    rank: int,
    candidate: CandidateRecord,
    replayed: float,
    steps: Sequence[parts.Step],
    added: Sequence[tuple[str, float | int | None, float, float]],
) -> SafeString:
    cosine, bm25 = candidate.raw[1], candidate.raw[0]
    lexical, semantic = candidate.raw[2], candidate.raw[3]
    absent = "not returned by this channel"
    facts = ui.Facts(
        [
            ui.Fact("node", ui.short_id(candidate.node_id, "node id")),
            ui.Fact("score recorded", ui.score(candidate.score, 10)),
            ui.Fact("replayed", ui.score(replayed, 10)),
            ui.Fact("BM25", ui.score(bm25, absent=absent)),
            ui.Fact("lexical rank", _place(lexical, absent)),
            ui.Fact("cosine", ui.score(cosine, absent=absent)),
            ui.Fact("semantic rank", _place(semantic, absent)),
            ui.Fact("graph rank", _place(candidate.graph_rank, absent)),
            ui.Fact("hops", _place(candidate.hops, absent)),
            ui.Fact("pinned rank", _place(candidate.pinned_rank, absent)),
            ui.Fact("content hash", ui.short_hash(candidate.content_hash, "content hash")),
        ]
    )
    weighted = document.policy.formula == "weighted"
    columns = [
        ui.Column("feature" if weighted else "channel", "main"),
        *(ui.Column(name, "num") for name in ("value" if weighted else "rank", "weight", "added")),
    ]
    cells = [
        [
            name,
            ui.nothing(absent) if value is None else ui.score(value) if weighted else value,
            ui.score(weight),
            ui.score(share, 10),
        ]
        for name, value, weight, share in added
    ]
    return format_html("{}{}", facts, parts.made_of(columns, cells, steps, f"Rank {rank}"))


def _place(value: int | None, absent: str) -> Any:
    return ui.nothing(absent) if value is None else value


def details_of(document: ReceiptDocument) -> list[SimpleNamespace]:
    shown = document.model_dump(mode="json", exclude_defaults=True)
    return [
        SimpleNamespace(title=name.capitalize(), tree=ui.JsonTree(shown[name], name))
        for name in ("request", "policy", "features", "corpus", "packing", "channels", "explain")
        if name in shown
    ]
