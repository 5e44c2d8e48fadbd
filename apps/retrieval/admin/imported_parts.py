"""What the page of an imported receipt is made of. The document is read; no word of its query is shown."""

from types import SimpleNamespace
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.retrieval.admin.parts import verdict_facts
from apps.retrieval.admin.ranks import Ranked, Share, Step, rank_table
from apps.retrieval.models import PrmeLabelRecord, PrmeReceipt
from apps.retrieval.prme.documents import Candidate, ReceiptDocument, ScoreProvenance
from apps.retrieval.prme.replay import adjusted, base_score
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


def imported_facts(receipt: PrmeReceipt, verdict: Verdict) -> ui.Facts:
    document = verdict.document
    policy = document.ranking_policy if isinstance(document, ReceiptDocument) else None
    return ui.Facts(
        [
            *verdict_facts(verdict),
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
    replayed = dict(zip((each.node_id for each in document.candidates), verdict.scores, strict=False))
    recorded = document.score_provenance or {}
    rows = [
        _ranked(each, recorded.get(each.node_id), replayed.get(each.node_id)) for each in document.candidates
    ]
    by_rank = any(each.rank_fusion is not None for each in recorded.values())
    return rank_table(rows, last="scope", by_rank=by_rank)


def _ranked(candidate: Candidate, provenance: ScoreProvenance | None, replayed: float | None) -> Ranked:
    name = format_html("node {}", ui.short_id(candidate.node_id, "node id"))
    if provenance is None:
        return Ranked(name, candidate.score, replayed, None, (), (), candidate.scope)
    shares, steps = shares_of(provenance), steps_of(provenance)
    facts = _provenance_facts(candidate, provenance)
    return Ranked(name, candidate.score, replayed, shares, steps, facts, candidate.scope)


def shares_of(provenance: ScoreProvenance) -> list[Share]:
    """In the order of the formula."""
    fusion, trace = provenance.rank_fusion, provenance.trace
    if fusion is None:
        return [
            Share(name, getattr(trace, field), weight, weight * getattr(trace, field))
            for (name, field), weight in zip(FEATURES, provenance.weights.additive, strict=True)
        ]
    k = provenance.weights.rrf_k or 0
    scaled = (k + 1) / 2
    ranks = (("semantic", fusion.semantic_rank), ("lexical", fusion.lexical_rank))
    return [Share(name, rank, 1.0, scaled / (k + rank) if rank is not None else 0.0) for name, rank in ranks]


def steps_of(provenance: ScoreProvenance) -> list[Step]:
    """The factors of the formula as one step, then the recorded adjustments."""
    score = base_score(provenance)
    before = sum(share.added for share in shares_of(provenance))
    steps = (
        []
        if abs(before - score) < ROUNDED
        else [Step("factors", score / before if before else 0.0, before, score)]
    )
    for each in provenance.adjustments:
        after = adjusted(score, each)
        steps.append(Step(each.kind, each.coefficient, score, after, each.source_node_id))
        score = after
    return steps


def _provenance_facts(candidate: Candidate, provenance: ScoreProvenance) -> list[ui.Fact]:
    trace = provenance.trace
    inherited = provenance.base_node_id != candidate.node_id
    return [
        ui.Fact("scored as", ui.short_id(provenance.base_node_id, "node id") if inherited else "itself"),
        ui.Fact("epistemic weight", ui.score(trace.epistemic_weight)),
        ui.Fact("type boost", ui.score(trace.node_type_boost)),
        ui.Fact("temporal affinity", ui.score(trace.temporal_affinity)),
        ui.Fact("path score", ui.score(trace.path_score)),
        ui.Fact("reranker", ui.score(candidate.reranker_score, absent="not reranked")),
        ui.Fact("content hash", ui.short_hash(candidate.content_sha256, "content hash")),
    ]


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
