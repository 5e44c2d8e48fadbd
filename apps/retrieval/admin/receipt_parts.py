"""What the page of a native receipt is made of: facts, weights, rows by rank, settings."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.core import ui
from apps.retrieval.admin.parts import named, node_names, verdict_facts
from apps.retrieval.admin.ranks import ABSENT, Ranked, Share, Step, rank_table
from apps.retrieval.models import Receipt
from apps.retrieval.receipts.replay import raw_of, scores_by_step
from apps.retrieval.receipts.schemas import CandidateRecord, ReceiptDocument, WeightsRecord
from apps.retrieval.scoring import ranks_of
from apps.retrieval.verdicts import Document, Verdict

PROFILE_WORDS = {
    "none": "none",
    "applied": "applied",
    "inapplicable": "inapplicable",
    "request_override": "overridden by the request",
}


def trace_id(receipt: Receipt, *, copy: bool = True) -> SafeString:
    href = reverse("admin:traces_trace_change", args=[receipt.trace_id])
    return ui.short_id(receipt.trace_id, "trace id", href=href, copy=copy)


def receipt_facts(receipt: Receipt, verdict: Verdict, document_url: str) -> ui.Facts:
    facts = [
        *verdict_facts(verdict),
        ui.Fact("profile", profile_of(receipt, verdict.document)),
        ui.Fact("recorded", ui.when(receipt.recorded_at)),
        ui.Fact("receipt", ui.short_id(receipt.pk, "receipt id", main=True)),
        ui.Fact(
            "of", format_html("trace {}", trace_id(receipt)) if receipt.trace_id else _home(verdict.document)
        ),
        ui.Fact("principal", ui.person(receipt.principal.display_name, receipt.principal.subject)),
        ui.Fact("mode", receipt.mode),
        ui.Fact("scopes", ", ".join(receipt.scopes) if receipt.scopes else "all of the principal's"),
        ui.Fact("formula", receipt.formula.replace("_", " ")),
        ui.Fact("scoring policy", policy_of(receipt, verdict.document)),
        ui.Fact("scorer contract", receipt.contract),
        ui.Fact("checksum", ui.short_hash(receipt.checksum, "checksum")),
        ui.Fact("canonical bytes", format_html('<a href="{}" download>Download</a>', document_url)),
    ]
    return ui.Facts(facts, first=True)


def _home(document: Document | None) -> Any:
    if isinstance(document, ReceiptDocument) and document.request.query.home == "query_set":
        return format_html("query set {}", ui.short_id(document.request.query.id, "query set id"))
    return "a trace that is gone"


def profile_of(receipt: Receipt, document: Document | None) -> Any:
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


def policy_of(receipt: Receipt, document: Document | None) -> Any:
    if not isinstance(document, ReceiptDocument):
        return ui.nothing("not readable")
    version, digest = document.policy.version, ui.short_hash(document.policy.sha256, "policy hash")
    if receipt.policy_id is None:
        return format_html("not stored, {}", digest)
    href = reverse("admin:core_storedpolicy_change", args=[receipt.policy_id])
    return format_html('<a href="{}">version {}</a>, {}', href, version, digest)


def weights_of(vector: WeightsRecord, document: ReceiptDocument) -> Any:
    """Applied against base weights: bars and a table where they differ, else the table alone, folded."""
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
    )
    if all(multiplier == 1.0 for multiplier in vector.multipliers):
        return format_html(
            '<details class="gv-card"><summary>{}</summary>{}</details>',
            "As the policy has them: every multiplier is 1",
            table,
        )
    ratios = [(name, applied / base) for name, base, _, applied in rows if base > 0]
    return format_html("{}{}", ui.Multipliers(ratios, "Applied weight against base weight"), table)


def candidates_of(document: ReceiptDocument, verdict: Verdict) -> ui.Records:
    names = node_names(UUID(each.node_id) for each in document.candidates)
    rows = [
        Ranked(
            named(UUID(each.node_id), names),
            each.score,
            replayed,
            shares_of(document, each),
            steps_of(document, each),
            _channel_facts(each),
            each.channels,
        )
        for each, replayed in zip(document.candidates, verdict.scores, strict=True)
    ]
    by_rank = document.policy.formula != "weighted"
    return rank_table(rows, last="channels", numeric=True, by_rank=by_rank)


def steps_of(document: ReceiptDocument, candidate: CandidateRecord) -> list[Step]:
    scores = scores_by_step(document, candidate)
    return [
        Step(each.kind, each.coefficient, before, after, each.source)
        for each, before, after in zip(candidate.adjustments, scores, scores[1:], strict=False)
    ]


def shares_of(document: ReceiptDocument, candidate: CandidateRecord) -> list[Share]:
    """In the order of the formula."""
    applied = document.weights[candidate.weights].applied
    if document.policy.formula == "weighted":
        values = zip(document.weight_names, candidate.features, applied, strict=True)
        return [Share(name, value, weight, weight * value) for name, value, weight in values]
    ranks, k = ranks_of(raw_of(candidate)), document.policy.fusion_k
    return [
        Share(name, ranks[name], weight, weight / (k + rank) if (rank := ranks[name]) is not None else 0.0)
        for name, weight in zip(document.weight_names, applied, strict=True)
    ]


def _channel_facts(candidate: CandidateRecord) -> list[ui.Fact]:
    bm25, cosine, lexical, semantic = candidate.raw[:4]
    return [
        ui.Fact("node", ui.short_id(candidate.node_id, "node id")),
        ui.Fact("BM25", ui.score(bm25, absent=ABSENT)),
        ui.Fact("lexical rank", _place(lexical)),
        ui.Fact("cosine", ui.score(cosine, absent=ABSENT)),
        ui.Fact("semantic rank", _place(semantic)),
        ui.Fact("graph rank", _place(candidate.graph_rank)),
        ui.Fact("hops", _place(candidate.hops)),
        ui.Fact("pinned rank", _place(candidate.pinned_rank)),
        ui.Fact("content hash", ui.short_hash(candidate.content_digest.hex(), "content hash")),
    ]


def _place(value: int | None) -> Any:
    return ui.nothing(ABSENT) if value is None else value


def details_of(document: ReceiptDocument) -> list[SimpleNamespace]:
    shown = document.model_dump(mode="json", exclude_defaults=True)
    return [
        SimpleNamespace(title=name.capitalize(), tree=ui.JsonTree(shown[name], name))
        for name in ("request", "policy", "features", "corpus", "packing", "channels", "explain")
        if name in shown
    ]
