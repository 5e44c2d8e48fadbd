"""Receipts that PRME wrote: their verdict, their rows by rank, and no word of their query before it is revealed."""

from types import SimpleNamespace
from typing import Any

from django.contrib import admin
from django.db.models import Count
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
    TextFilter,
    WindowFilter,
    choice_filter,
    holds,
)
from apps.operations.admin.holds import PlaceHold
from apps.retrieval.admin import parts
from apps.retrieval.exceptions import UnknownReceipt
from apps.retrieval.models import PRME_HOLD, PrmeLabelRecord, PrmeReceipt
from apps.retrieval.prme.documents import Candidate, ReceiptDocument, ScoreProvenance
from apps.retrieval.prme.replay import adjusted, base_score
from apps.retrieval.services import examine_imported, reveal_imported
from apps.retrieval.verdicts import Verdict

FEATURES = (
    ("semantic", "semantic_similarity"),
    ("lexical", "lexical_relevance"),
    ("graph", "graph_proximity"),
    ("recency", "recency_factor"),
    ("salience", "salience"),
    ("confidence", "confidence"),
)


ROUNDED = 1e-9
"""A sum and its score that differ by less differ by rounding alone."""


class ImportWindow(WindowFilter):
    default = "all"
    field = "imported_at"


class PrincipalFilter(TextFilter):
    title = "principal"
    parameter_name = "principal"
    field = "principal_id"
    hint = "id"


class RequestFilter(TextFilter):
    title = "request"
    parameter_name = "request_id"
    hint = "id of PRME"


FORMULA = choice_filter(
    "formula",
    "formula",
    [("weighted", "weighted"), ("rank_fusion", "rank fusion"), ("none", "cannot be replayed")],
)


class RevealDocument(GovernedAction):
    name, path, label = "reveal", "<uuid:object_id>/reveal/", "Reveal document…"
    title = "Reveal the document"
    grants = ("reveal_text",)
    fill = "#query"

    @classmethod
    def button(cls, model_admin: Any, request: HttpRequest, obj: Any) -> ui.ActionButton | None:
        # It stands at the closed text, not among the actions of the page.
        return None

    def preview(self, request: HttpRequest, obj: Any, form: ReasonForm) -> Preview:
        summary = (
            "Shows the receipt as it came, its query included, to you, in one answer. Who and why is kept."
        )
        return Preview(summary, "Reveal 1 document", {"checksum": obj.checksum})

    def act(self, request: HttpRequest, obj: Any, data: dict[str, Any], preview: Preview) -> Done:
        text = reveal_imported(receipt_id=obj.pk, reason=data["reason"])
        return Done(f"Revealed by you at {clock.now():%H:%M:%S} UTC.", revealed=ui.LongText(text))


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
    url = model_admin.url(RevealDocument.name, receipt.pk) if holds(request, receipt, "reveal_text") else ""
    context: dict[str, Any] = {
        "lead": format_html('<span id="query">{}</span>', ui.Lock("query and document closed", url)),
        "notices": parts.verdict_notices(verdict),
        "facts": imported_facts(receipt, verdict),
        "sections": [],
    }
    document = verdict.document
    if not isinstance(document, ReceiptDocument):
        return context
    context["sections"] = [
        SimpleNamespace(
            title="Candidates by rank",
            anchor="candidates",
            content=candidates_of(document, verdict),
            note=f"{len(document.candidates)} returned",
        ),
        SimpleNamespace(title="Context", anchor="context", content=context_of(document)),
        SimpleNamespace(title="Label records", anchor="labels", content=labels_of(receipt)),
    ]
    context["key"] = ui.FeatureKey()
    context["details"] = details_of(document)
    return context


def _held_page(receipt: PrmeReceipt) -> dict[str, Any]:
    """Past its time it is nobody's to read; a hold alone keeps it."""
    notice = ui.Notice("held", "Past its time: a hold keeps it from being deleted, and nobody reads it.")
    return {"notices": [notice], "facts": imported_facts(receipt, Verdict(())), "sections": []}


def imported_facts(receipt: PrmeReceipt, verdict: Verdict) -> ui.Facts:
    document = verdict.document
    policy = document.ranking_policy if isinstance(document, ReceiptDocument) else None
    return ui.Facts(
        [
            *parts.verdict_facts(verdict),
            ui.Fact("imported", ui.when(receipt.imported_at)),
            ui.Fact("receipt", ui.short_id(receipt.pk, "receipt id", main=True)),
            ui.Fact("request", ui.short_id(receipt.request_id, "request id")),
            ui.Fact("principal", ui.person(receipt.principal.display_name, receipt.principal.subject)),
            ui.Fact("schema", f"{receipt.schema_version} of PRME"),
            ui.Fact("formula", receipt.formula.replace("_", " ")),
            ui.Fact("order by", policy.replace("_", ", ") if policy else ui.nothing("not recorded")),
            ui.Fact("asked for", ui.when(receipt.reference_time)),
            ui.Fact("scopes", ", ".join(receipt.scopes) if receipt.scopes else "unfiltered"),
            ui.Fact("checksum", ui.short_hash(receipt.checksum, "checksum")),
            ui.Fact("deleted", ui.deadline(receipt.expires_at)),
        ],
        first=True,
    )


def candidates_of(document: ReceiptDocument, verdict: Verdict) -> ui.Records:
    scale = max((_widest(document, each) for each in document.candidates), default=0.0)
    columns = [
        ui.Column("#", "num"),
        ui.Column("candidate", "main"),
        ui.Column("score", "num"),
        ui.Column("what made the score"),
        ui.Column("scope", later=True),
    ]
    replayed = dict(zip((each.node_id for each in document.candidates), verdict.scores, strict=False))
    rows = [
        _candidate_row(document, rank, each, replayed.get(each.node_id), scale)
        for rank, each in enumerate(document.candidates, start=1)
    ]
    empty = ui.EmptyState("Zero hit.", "Nothing was returned, and that was recorded.", level=3)
    return ui.Records("Candidates by rank", columns, rows, header=1, empty=empty)


def _widest(document: ReceiptDocument, candidate: Candidate) -> float:
    """The sum before factors took from it, or the score where steps added more: bars of all rows fit in it."""
    provenance = (document.score_provenance or {}).get(candidate.node_id)
    added = contributions_of(provenance) if provenance is not None else []
    return max(candidate.score, sum(share for *_, share in added))


def _candidate_row(
    document: ReceiptDocument, rank: int, candidate: Candidate, replayed: float | None, scale: float
) -> ui.Record:
    provenance = (document.score_provenance or {}).get(candidate.node_id)
    bar: Any = ui.nothing("not recorded before schema 2")
    more: Any = ui.Facts([ui.Fact("score recorded", ui.score(candidate.score, 10))])
    if provenance is not None:
        added, steps = contributions_of(provenance), steps_of(provenance)
        bar = parts.score_bar([(name, share) for name, *_, share in added], steps, scale)
        more = _candidate_more(rank, candidate, provenance, replayed, steps)
    name = format_html("node {}", ui.short_id(candidate.node_id, "node id"))
    tone: Any = "bad" if replayed is not None and replayed != candidate.score else ""
    return ui.Record([rank, name, ui.score(candidate.score), bar, candidate.scope], more=more, tone=tone)


def contributions_of(provenance: ScoreProvenance) -> list[tuple[str, float | int | None, float, float]]:
    """(name, feature or rank, weight, what it added) in the order of the formula."""
    fusion, trace = provenance.rank_fusion, provenance.trace
    if fusion is None:
        return [
            (name, getattr(trace, field), weight, weight * getattr(trace, field))
            for (name, field), weight in zip(FEATURES, provenance.weights.additive, strict=True)
        ]
    k = provenance.weights.rrf_k or 0
    scaled = (k + 1) / 2
    ranks = (("semantic", fusion.semantic_rank), ("lexical", fusion.lexical_rank))
    return [(name, rank, 1.0, scaled / (k + rank) if rank is not None else 0.0) for name, rank in ranks]


def steps_of(provenance: ScoreProvenance) -> list[parts.Step]:
    """The factors of the formula as one step, then the recorded adjustments."""
    score = base_score(provenance)
    before = sum(share for *_, share in contributions_of(provenance))
    steps = (
        []
        if abs(before - score) < 1e-9
        else [parts.Step("factors", score / before if before else 0.0, before, score)]
    )
    for each in provenance.adjustments:
        after = adjusted(score, each)
        steps.append(parts.Step(each.kind, each.coefficient, score, after, each.source_node_id))
        score = after
    return steps


def _candidate_more(
    rank: int,
    candidate: Candidate,
    provenance: ScoreProvenance,
    replayed: float | None,
    steps: list[parts.Step],
) -> SafeString:
    trace, fused = provenance.trace, provenance.rank_fusion is not None
    inherited = provenance.base_node_id != candidate.node_id
    facts = [
        ui.Fact("score recorded", ui.score(candidate.score, 10)),
        ui.Fact("replayed", ui.score(replayed, 10, absent="not replayed")),
        ui.Fact("scored as", ui.short_id(provenance.base_node_id, "node id") if inherited else "itself"),
        ui.Fact("epistemic weight", ui.score(trace.epistemic_weight)),
        ui.Fact("type boost", ui.score(trace.node_type_boost)),
        ui.Fact("temporal affinity", ui.score(trace.temporal_affinity)),
        ui.Fact("path score", ui.score(trace.path_score)),
        ui.Fact("reranker", ui.score(candidate.reranker_score, absent="not reranked")),
        ui.Fact("content hash", ui.short_hash(candidate.content_sha256, "content hash")),
    ]
    columns = [
        ui.Column("channel" if fused else "feature", "main"),
        *(ui.Column(name, "num") for name in ("rank" if fused else "value", "weight", "added")),
    ]
    cells = [
        [
            name,
            ui.nothing("not on this channel") if value is None else value if fused else ui.score(value),
            ui.score(weight),
            ui.score(share, 10),
        ]
        for name, value, weight, share in contributions_of(provenance)
    ]
    return format_html("{}{}", ui.Facts(facts), parts.made_of(columns, cells, steps, f"Rank {rank}"))


def context_of(document: ReceiptDocument) -> Any:
    """What was packed, entry by entry, with its cost; what was not, with the word."""
    entries = [each for each in document.candidates if each.in_context]
    if not entries:
        return SafeString(
            '<p class="gv-subtle">No entry was packed: the receipt records an empty context.</p>'
        )
    rows = [
        ui.Record(
            [
                rank,
                format_html("node {}", ui.short_id(each.node_id, "node id")),
                (each.representation or "").replace("_", " ")
                if each.in_context
                else ui.nothing("not in the context"),
                ui.count(each.token_cost),
                "fits" if each.in_context else "left out",
            ],
            tone="" if each.in_context else "quiet",
        )
        for rank, each in enumerate(document.candidates, start=1)
    ]
    columns = [
        ui.Column("#", "num"),
        ui.Column("entry", "main"),
        ui.Column("as"),
        ui.Column("tokens", "num"),
        ui.Column("budget"),
    ]
    facts = ui.Facts(
        [
            ui.Fact("context hash", ui.short_hash(document.context_sha256, "context hash")),
            ui.Fact("entries", len(entries)),
            ui.Fact("tokens of entries", ui.count(sum(each.token_cost for each in entries))),
            ui.Fact("budget", ui.count(document.packing.token_budget)),
        ]
    )
    return format_html("{}{}", facts, ui.Records("Context entries", columns, rows, header=1))


def labels_of(receipt: PrmeReceipt) -> ui.Records:
    """Which records judge it; what they say of each node is in their documents, which are closed."""
    found = (
        PrmeLabelRecord.objects.filter(receipt_id=receipt.pk).defer("document").order_by("imported_at", "id")
    )
    rows = [
        ui.Record(
            [
                ui.when(row.imported_at),
                ui.short_id(row.feedback_id, "feedback id"),
                row.surface,
                ui.count(row.label_count),
            ]
        )
        for row in found[:200]
    ]
    columns = [
        ui.Column("imported"),
        ui.Column("record", "main"),
        ui.Column("surface"),
        ui.Column("labels", "num"),
    ]
    return ui.Records(
        "Label records",
        columns,
        rows,
        header=1,
        empty=ui.EmptyState("No label.", "Nobody judged it.", level=3),
    )


def details_of(document: ReceiptDocument) -> list[SimpleNamespace]:
    """Settings and installation. Parameters of the request are free of form and may repeat words of it: closed."""
    shown = document.model_dump(mode="json", include={"scoring", "packing"}, exclude_none=True)
    if document.execution is not None:
        shown["installation"] = document.execution.features
    return [
        SimpleNamespace(title=name.capitalize(), tree=ui.JsonTree(value, name))
        for name, value in shown.items()
    ]
