"""The reading half of a search: candidates, the graph axis and its strengths, in read-only sessions."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from django.db import DatabaseError, transaction

from apps.core import clock, policies
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import current_principal, principal_session
from apps.core.problems import Problem
from apps.feedback.selectors import strengths
from apps.graph.embedders import QueryEmbedding, embed_query
from apps.learning.selectors.active import AT_BASE, Resolved, pointed, resolved
from apps.retrieval.listing import Listing, fetch, scan
from apps.retrieval.pages import PAGE_TYPE, Expansion, PageRow, expand
from apps.retrieval.policy import KIND as SCORING
from apps.retrieval.policy import ruling_of
from apps.retrieval.receipts.document import ProfileUse
from apps.retrieval.reranking import Verdict, judge
from apps.retrieval.retrieve import Begun, begin, corpora, finish
from apps.retrieval.schemas import Retrieval, RetrievalRequest
from apps.search.exceptions import RetrievalFailed
from apps.search.hints import hints_kept, hints_shown
from apps.search.rows import GraphRow, ShownRow, of_listed, of_retrieved
from apps.search.schemas import SearchRequest
from apps.traces.paths import verified
from apps.traces.policy import policy_in_effect

log = structlog.get_logger(__name__)

MAX_GRAPH_ROWS = 30
MAX_POOL = 200
"""Pages of the graph axis whose strength is looked up."""

SEARCHED = frozenset({"lexical", "semantic"})
"""Channels of which one must answer; the others add to them."""
KEPT = ("rerank_applied", "extension_errors", "graph_truncated", "profile")
"""What a trace keeps of an answer's own words about itself."""

READ_ONLY = {"transaction_read_only": "on"}
NO_EMBEDDING = QueryEmbedding("empty")


@dataclass(frozen=True, slots=True)
class Found:
    """What was found. `settings` is what a trace keeps of how; `shown` what the answer says beside its rows.

    In mode search `retrieval` and what it was `asked` are there, of which a receipt is made.
    """

    rows: tuple[ShownRow, ...]
    partial: bool
    settings: Mapping[str, Any]
    shown: Mapping[str, Any]
    graph: tuple[GraphRow, ...] = ()
    retrieval: Retrieval | None = None
    asked: RetrievalRequest | None = None
    why_empty: Mapping[str, Any] | None = None
    profile: ProfileUse = AT_BASE.use


def find(caller: PrincipalIdentity, request: SearchRequest, *, at: datetime) -> Found:
    """Answer the reading half of a request. The embedding is made before the session begins.

    Raises RetrievalFailed where nothing that was needed answered.
    """
    embedding = embed_query(request.query) if request.mode == "search" else NO_EMBEDDING
    lowered = _lowered(request, embedding, at)
    try:
        if request.mode == "search":
            return _search(caller, request, lowered)
        with principal_session(caller, limits=READ_ONLY):
            listing = fetch(request.node_ids or ()) if request.node_ids is not None else scan(lowered)
            return _listed(request, listing)
    except Problem:
        raise
    except DatabaseError:
        log.error("retrieval failed")
        raise RetrievalFailed from None


def _lowered(request: SearchRequest, embedding: QueryEmbedding, at: datetime) -> RetrievalRequest:
    return RetrievalRequest(
        query=request.query,
        embedding=embedding,
        reference_time=request.reference_time or at,
        scopes=request.scope_set,
        corpus=request.corpus,
        limit=request.limit,
        filters=request.filters.lowered(),
        epistemic_mode=request.epistemic_mode,
        min_score=request.min_score,
        max_per_source=request.max_per_source,
        include_cross_scope=request.include_cross_scope,
    )


def _search(caller: PrincipalIdentity, request: SearchRequest, lowered: RetrievalRequest) -> Found:
    """In one session, or in two with a reranker between them."""
    explicit = _asked_for(request)
    stored = corpora(lowered, caller)
    ruling_id = policies.ids_in_effect(caller.workspace_id, SCORING)
    profile = pointed(caller.principal_id, request.scope_set)
    along = (ruling_id, stored) if explicit else (ruling_id, stored, profile)
    with principal_session(caller, limits=READ_ONLY, along=along):
        ruling = ruling_of(*ruling_id.answer)
        ranked_by = explicit or resolved(profile.answer, ruling)
        begun = begin(lowered, multipliers=ranked_by.multipliers, policy=ruling, known=stored.answer)
        if begun.pairs is None:
            return _searched(request, begun, Verdict(), ranked_by.use)
    verdict = judge(begun.pairs)
    with principal_session(caller, limits=READ_ONLY):
        return _searched(request, begun, verdict, ranked_by.use)


def _searched(request: SearchRequest, begun: Begun, verdict: Verdict, use: ProfileUse) -> Found:
    found = finish(begun, verdict)
    searched = [c for c in found.channels if c.name in SEARCHED]
    if not found.rows and found.partial and not any(c.status == "ok" for c in searched):
        log.error("every channel failed")
        raise RetrievalFailed
    rows = tuple(of_retrieved(row) for row in found.rows)
    graph, expansion, failed = _graph_axis(request, found)
    shown: dict[str, Any] = {
        "channels": [_channel(report) for report in found.channels],
        "excluded": dict(found.excluded),
        "rerank_applied": found.reranker is not None,
        "profile": _profile(use),
    }
    if found.errors:
        shown["extension_errors"] = dict(found.errors)
    if request.graph_expand:
        shown["graph_truncated"] = expansion.truncated if expansion else False
    settings = _settings(found) | _empty(found.why_empty)
    if request.include_cross_scope:
        shown["cross_scope_hints"] = hints_shown(found.hints, explicit=request.epistemic_mode == "explicit")
        settings["cross_scope_hints"] = hints_kept(found.hints)
    return Found(
        rows=rows,
        partial=found.partial or failed,
        settings=settings | {name: shown[name] for name in KEPT if name in shown},
        shown=shown,
        graph=graph,
        retrieval=found,
        asked=begun.request,
        why_empty=found.why_empty if not rows else None,
        profile=use,
    )


def _asked_for(request: SearchRequest) -> Resolved | None:
    """What the request itself asks for, before what its principal has active for exactly these scopes."""
    if not request.ranking_multipliers:
        return None
    explicit: dict[str, float] = {str(name): value for name, value in request.ranking_multipliers.items()}
    return Resolved(ProfileUse(status="request_override"), explicit)


def _profile(use: ProfileUse) -> dict[str, Any]:
    return {"id": str(use.id) if use.id else None, "status": use.status, "reason": use.reason}


def _settings(found: Retrieval) -> dict[str, Any]:
    """How the ranked axis came about, as the trace keeps it."""
    policy = found.policy
    return {
        "mode": "search",
        "formula": policy.formula,
        "scoring_policy": {"id": str(policy.id) if policy.id else None, "sha256": policy.sha256},
        "channels": {
            c.name: {"status": c.status, "count": c.count, "method": c.method, "coverage": c.coverage}
            for c in found.channels
        },
        "excluded": dict(found.excluded),
        "omitted": found.omitted,
    }


def _channel(report: Any) -> dict[str, Any]:
    shown = {
        "name": report.name,
        "status": report.status,
        "count": report.count,
        "milliseconds": round(report.milliseconds, 3),
        "method": report.method,
        "coverage": report.coverage,
        "error": report.error,
    }
    return {name: value for name, value in shown.items() if value is not None}


def _empty(why: Mapping[str, Any] | None) -> dict[str, Any]:
    if why is None:
        return {}
    kept = {"why_empty": dict(why)}
    return kept | ({"filters_unmatched": why["filters_unmatched"]} if "filters_unmatched" in why else {})


def _listed(request: SearchRequest, listing: Listing) -> Found:
    rows = tuple(of_listed(row, rank) for rank, row in enumerate(listing.rows, 1))
    settings: dict[str, Any] = {"mode": request.mode}
    shown: dict[str, Any] = {}
    if request.node_ids is not None:
        shown["not_found"] = [str(node_id) for node_id in listing.not_found]
        settings["not_found"] = len(listing.not_found)
        return Found(rows, False, settings, shown)
    assert listing.since is not None
    assert listing.until is not None
    surfaces = [
        {"name": s.name, "count": s.count, "truncated": s.truncated} | ({"error": s.error} if s.error else {})
        for s in listing.surfaces
    ]
    window = {"since": clock.iso(listing.since), "until": clock.iso(listing.until)}
    settings |= {"window": window, "surfaces": surfaces}
    shown |= {"window": window, "surfaces": surfaces}
    why = listing.why_empty if not rows else None
    return Found(rows, listing.partial, settings | _empty(why), shown, why_empty=why)


def _graph_axis(
    request: SearchRequest, found: Retrieval
) -> tuple[tuple[GraphRow, ...], Expansion | None, bool]:
    """The rows of the graph axis, what the walk was, and whether a part of it failed."""
    if not request.graph_expand:
        return (), None, False
    origins = [
        (row.provenance.repo, row.slug)
        for row in found.rows
        if row.provenance.type == PAGE_TYPE and row.provenance.repo and row.slug
    ]
    try:
        with transaction.atomic():
            expansion = expand(
                list(dict.fromkeys(origins)),
                hops=request.graph_hops,
                scopes=request.scope_set,
                shared_only=request.corpus == "shared",
            )
            rows = (
                _with_memory(expansion.rows) if request.use_memory else tuple(map(GraphRow, expansion.rows))
            )
    except DatabaseError:
        log.error("graph expansion failed")
        return (), None, True
    return rows[: min(request.limit * 2, MAX_GRAPH_ROWS)], expansion, False


def _with_memory(pages: tuple[PageRow, ...]) -> tuple[GraphRow, ...]:
    """By hop, then learned strength, then the order of the walk; before the cut, so that the learned may enter."""
    half_life_s = policy_in_effect(current_principal().workspace_id).document.half_life_s
    pool = pages[:MAX_POOL]
    paths = [verified(page.paths) for page in pool]
    keys = {edge.key for page in paths for path in page for edge in path}
    known = strengths(keys, as_of=clock.now(), half_life_s=half_life_s)
    rows = [
        GraphRow(page, max((sum(known[edge.key] for edge in path) for path in kept), default=0.0))
        for page, kept in zip(pool, paths, strict=True)
    ]
    # Sorting is stable, so ties keep the order of the walk.
    return tuple(sorted(rows, key=lambda row: (row.page.hop, -(row.learned_strength or 0.0))))
