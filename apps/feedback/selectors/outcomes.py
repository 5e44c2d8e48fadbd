"""Reads of outcomes: learned strength, credits, the page of a trace.

`history` and `trace_detail` speak as the API does, in the session of a principal; `explorer` and its kin serve
staff.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from apps.core import clock
from apps.core.db.sessions import current_principal
from apps.core.pages import KeysetPage
from apps.feedback.credits import edge_of
from apps.feedback.models import Credit, EdgeStrength
from apps.feedback.schemas import HistoryQuery
from apps.feedback.selectors.citations import citations_state
from apps.traces.activation import read_activation
from apps.traces.decay import decay
from apps.traces.exceptions import UnknownTrace
from apps.traces.models import STAGES, ActionReceipt, Trace
from apps.traces.policy import policy_in_effect, policy_of
from apps.traces.receipts import render
from apps.traces.selectors import SavedSource, saved_sources


def strengths(edge_keys: Collection[str], *, as_of: datetime, half_life_s: float) -> dict[str, float]:
    """The strength of each edge as of a time; unknown ones are 0. One query."""
    rows = EdgeStrength.objects.filter(edge_key__in=edge_keys).values_list(
        "edge_key", "strength", "updated_at"
    )
    found = {key: decay(strength, updated_at, as_of, half_life_s) for key, strength, updated_at in rows}
    return {key: found.get(key, 0.0) for key in edge_keys}


def history(query: HistoryQuery) -> dict[str, Any]:
    """A page of the caller's traces, newest first."""
    traces: QuerySet[Trace] = Trace.objects.all()
    if query.mode is not None:
        traces = traces.filter(mode=query.mode)
    if query.since is not None:
        traces = traces.filter(recorded_at__gte=query.since)
    if query.until is not None:
        traces = traces.filter(recorded_at__lt=query.until)
    page = KeysetPage.of(
        traces.filter(principal_id=current_principal().principal_id),
        limit=query.limit,
        cursor=query.cursor,
        owner=current_principal().principal_id,
        listing="traces",
        filters=query.model_dump(mode="json", include={"mode", "since", "until"}),
    )
    return {"traces": [trace_shown(trace) for trace in page.items], "next_cursor": page.next_cursor}


def trace_shown(trace: Trace) -> dict[str, Any]:
    """A trace as history lists it."""
    recording = {"memory_recording": trace.recording} if trace.recording else {}
    return {
        "trace_id": str(trace.id),
        "timestamp": clock.iso(trace.recorded_at),
        "mode": trace.mode,
        "query": trace.query,
        "request": trace.request,
        "settings": trace.settings | recording,
        "source_count": trace.source_count,
        "retrieval_receipt_id": str(trace.retrieval_receipt_id) if trace.retrieval_receipt_id else None,
        "retention": {"class": trace.retention_class, "expires_at": clock.iso(trace.expires_at)},
    }


def trace_detail(trace_id: UUID, *, limit: int, cursor: str | None) -> dict[str, Any]:
    """One trace with its sources and a page of its action receipts, oldest first. Raises UnknownTrace."""
    owner = current_principal()
    trace = Trace.objects.filter(pk=trace_id).first()
    if trace is None:
        raise UnknownTrace
    page = KeysetPage.of(
        ActionReceipt.objects.filter(principal_id=owner.principal_id, trace_id=trace_id),
        limit=limit,
        cursor=cursor,
        owner=owner.principal_id,
        listing=f"traces/{trace_id}/audit",
        order=("recorded_at", "id"),
    )
    policy = policy_of(trace.policy_id)
    return trace_shown(trace) | {
        "policy": policy.shown(),
        "citations": citations_state(trace.retrieval_receipt_id).shown(),
        "sources": _sources(trace_id),
        "audit": _audit(page.items),
        "next_cursor": page.next_cursor,
    }


def _sources(trace_id: UUID) -> list[dict[str, Any]]:
    sources = saved_sources(trace_id)
    half_life_s = policy_in_effect(current_principal().workspace_id).document.half_life_s
    names = [source.source_id for source in sources]
    current = read_activation(names, as_of=clock.now(), half_life_s=half_life_s)
    return [
        _source(source) | {"activation": current[source.source_id].document() | {"label": "current"}}
        for source in sources
    ]


def _source(source: SavedSource) -> dict[str, Any]:
    return {
        "source_id": source.source_id,
        "provenance": source.provenance,
        "node_id": str(source.node_id) if source.node_id else None,
        "axes": source.axes,
        "rank": source.rank,
        "graph_rank": source.graph_rank,
        "hop": source.hop,
        "score": source.score,
        "components": source.components,
        "location": source.location,
        "folded_under": source.folded_under,
        "paths": [[edge.shown() for edge in path] for path in source.paths],
        "stage": STAGES[source.stage],
    }


def _audit(receipts: Sequence[ActionReceipt]) -> list[dict[str, Any]]:
    credits: dict[UUID, list[dict[str, Any]]] = {}
    for credit in Credit.objects.filter(receipt_id__in=[r.id for r in receipts]).order_by("edge_key"):
        credits.setdefault(credit.receipt_id, []).append(
            {
                "edge": edge_of(credit.edge_key),
                "delta": credit.delta,
                "credited_at": clock.iso(credit.credited_at),
                "active": credit.active,
            }
        )
    return [
        render(receipt)
        | {"kind": receipt.kind, "actor": receipt.actor, "active_credits": credits.get(receipt.id, [])}
        for receipt in receipts
    ]


def learned_edges(*, limit: int, cursor: str | None) -> dict[str, Any]:
    """A page of the caller's learned edges by their last change, newest first."""
    owner = current_principal()
    now = clock.now()
    half_life_s = policy_in_effect(owner.workspace_id).document.half_life_s
    page = KeysetPage.of(
        EdgeStrength.objects.filter(principal_id=owner.principal_id),
        limit=limit,
        cursor=cursor,
        owner=owner.principal_id,
        listing="learned-edges",
        order=("-id",),
    )
    counts = _credit_counts([edge.edge_key for edge in page.items])
    edges = [
        {
            "edge": edge_of(edge.edge_key),
            "strength": decay(edge.strength, edge.updated_at, now, half_life_s),
            "updated_at": clock.iso(edge.updated_at),
            "as_of": clock.iso(now),
            "active_credits": counts.get(edge.edge_key, (0, 0))[0],
            "reversed_credits": counts.get(edge.edge_key, (0, 0))[1],
        }
        for edge in page.items
    ]
    return {"edges": edges, "next_cursor": page.next_cursor}


def _credit_counts(edge_keys: Sequence[str]) -> dict[str, tuple[int, int]]:
    """By edge: how many credits are active, how many reversed."""
    rows = (
        Credit.objects.filter(edge_key__in=edge_keys)
        .values("edge_key")
        .annotate(
            active_count=Count("id", filter=Q(active=True)),
            reversed_count=Count("id", filter=Q(active=False)),
        )
    )
    return {row["edge_key"]: (row["active_count"], row["reversed_count"]) for row in rows}


def current_activation(source_ids: Sequence[str]) -> dict[str, Any]:
    """The caller's activation of sources as of now; unknown ones read as zero."""
    half_life_s = policy_in_effect(current_principal().workspace_id).document.half_life_s
    found = read_activation(source_ids, as_of=clock.now(), half_life_s=half_life_s)
    return {"activation": [{"source_id": name} | view.document() for name, view in found.items()]}
