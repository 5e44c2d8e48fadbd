"""From a retrieval to the document of its receipt."""

import base64
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.core import clock
from apps.core.ids import uuid7
from apps.retrieval.identity import keyed_query_identity
from apps.retrieval.packing import TIERS, PackedContext, PackedEntry
from apps.retrieval.policy import SCORER_CONTRACT
from apps.retrieval.receipts.schemas import SCHEMA, Mode, PackingRecord, ProfileStatus
from apps.retrieval.schemas import ChannelReport, Filters, Retrieval, RetrievalRequest, Row, Weights
from apps.retrieval.scoring import DECIMALS

NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True)
class ProfileUse:
    """What the active ranking profile did for a request."""

    id: UUID | None = None
    status: ProfileStatus = "none"
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class NewReceipt:
    """A retrieval to be kept: for a trace, or for a query of a query set (`query_set_id` and its name there)."""

    request: RetrievalRequest
    retrieval: Retrieval
    recorded_at: datetime
    trace_id: UUID | None = None
    query_set_id: UUID | None = None
    query_name: str | None = None
    mode: Mode = "search"
    profile: ProfileUse = ProfileUse()
    context: PackedContext | None = None
    id: UUID = field(default_factory=uuid7)

    def __post_init__(self) -> None:
        if (self.trace_id is None) == (self.query_set_id is None):
            raise ValueError("the words of a query have one home")


def content_digest(title: str, content: str, key: bytes) -> bytes:
    """HMAC-SHA-256 of title, LF and text under the principal's key."""
    return hmac.digest(key, f"{title}\n{content}".encode(), "sha256")


def document_of(new: NewReceipt, key: bytes) -> dict[str, Any]:
    """The document, of JSON types; what is at its default is left out."""
    found, policy = new.retrieval, new.retrieval.policy
    entries = {entry.node_id: entry for entry in new.context.entries} if new.context else {}
    document: dict[str, Any] = {
        "schema_version": SCHEMA,
        "receipt_id": str(new.id),
        "recorded_at": clock.iso(new.recorded_at),
        "request": _request(new, key),
        "policy": {
            "id": str(policy.id) if policy.id else None,
            "sha256": policy.sha256,
            "version": policy.version,
            "formula": policy.formula,
            "fusion_k": policy.fusion_k,
        }
        | _given(query_analysis=found.query_analysis),
        "features": {
            "contract": SCORER_CONTRACT,
            "embedder": found.embedder,
            "lexical": found.analyser,
        }
        | _given(extensions={"reranker": found.reranker} if found.reranker else None),
        "corpus": {"digest": found.corpus_digest},
        "weights": [_weights(found.weights)],
        "candidates": [_candidate(row, key, entries.get(row.node_id)) for row in found.rows],
        "omitted": found.scored - len(found.rows),
        "channels": [_channel(report) for report in found.channels],
        "explain": {
            "scored": found.scored,
            "query_groups": found.query_groups,
            "groups_used": found.groups_used,
        }
        | _given(excluded=dict(found.excluded) or None, errors=dict(found.errors) or None),
    }
    if new.context is not None:
        document["policy"]["packing"] = new.context.version
        document["packing"] = _packing(new.context, found.rows)
        document["context_sha256"] = new.context.sha256
    if new.profile.status != "none":
        document["profile"] = _profile(new.profile)
    return document


def _request(new: NewReceipt, key: bytes) -> dict[str, Any]:
    asked = new.request
    if new.trace_id is not None:
        home: dict[str, Any] = {"home": "trace", "id": str(new.trace_id)}
    else:
        home = {"home": "query_set", "id": str(new.query_set_id), "name": new.query_name}
    return {
        "query": home,
        "query_identity": keyed_query_identity(asked.query, key),
        "mode": new.mode,
        "scopes": sorted(set(asked.scopes)) if asked.scopes is not None else None,
        "limit": asked.limit,
        "reference_time": clock.iso(asked.reference_time),
    } | _given(
        corpus=asked.corpus if asked.corpus != "all" else None,
        filters=_filters(asked.filters),
        known_at=clock.iso(asked.filters.known_at) if asked.filters.known_at else None,
        epistemic_mode=asked.epistemic_mode if asked.epistemic_mode != "default" else None,
        min_score=asked.min_score,
        max_per_source=asked.max_per_source,
        include_cross_scope=asked.include_cross_scope or None,
    )


def _filters(filters: Filters) -> dict[str, Any] | None:
    if filters == NO_FILTERS:
        return None
    values = {name: getattr(filters, name) for name in Filters.__dataclass_fields__}
    return {
        name: clock.iso(value) if isinstance(value, datetime) else value
        for name, value in values.items()
        if value not in ((), None)
    }


def _weights(weights: Weights) -> dict[str, Any]:
    return {
        "base": list(weights.base.values()),
        "multipliers": list(weights.multipliers.values()),
        "applied": list(weights.applied.values()),
    }


def _candidate(row: Row, key: bytes, entry: PackedEntry | None) -> dict[str, Any]:
    features, raw = row.features, row.raw
    candidate: dict[str, Any] = {
        "node_id": str(row.node_id),
        "content_hash": _short(content_digest(row.title, row.content, key)),
        "features": [
            features.semantic,
            features.lexical,
            features.graph,
            features.recency,
            features.salience,
            features.confidence,
        ],
        "raw": [_rounded(raw.bm25), _rounded(raw.cosine), raw.lexical_rank, raw.semantic_rank],
        "channels": row.path_score,
        "score": row.score,
    } | _given(hops=raw.hops, graph_rank=raw.graph_rank, pinned_rank=raw.pinned_rank)
    if row.adjustments:
        candidate["adjustments"] = [
            {"kind": step.kind, "coefficient": step.coefficient}
            | ({"source": str(step.source)} if step.source else {})
            for step in row.adjustments
        ]
    if entry is not None:
        candidate["token_cost"] = entry.token_cost
        if entry.representation != "full":
            candidate["representation"] = entry.representation
        if not entry.has_content:
            candidate["has_content"] = False
    return candidate


def _short(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _rounded(measured: float | None) -> float | None:
    """What a channel measured, with the decimals of scores: nothing is computed from it again."""
    return None if measured is None else round(measured, DECIMALS)


def _packing(context: PackedContext, rows: Sequence[Row]) -> dict[str, Any]:
    index = {row.node_id: number for number, row in enumerate(rows)}
    options = context.options
    chosen = {name: getattr(options, name) for name in ("ordering", "format", "guidance", "min_fidelity")}
    usual = PackingRecord.model_fields
    return {name: value for name, value in chosen.items() if value != usual[name].default} | {
        "token_budget": options.token_budget,
        "tokenizer": context.tokenizer,
        "used_tokens": context.used_tokens,
        "order": [index[entry.node_id] for entry in context.entries],
        "tiers": [sum(entry.tier == tier for entry in context.entries) for tier in TIERS],
    }


def _channel(report: ChannelReport) -> dict[str, Any]:
    return {
        "name": report.name,
        "status": report.status,
        "count": report.count,
        "milliseconds": round(report.milliseconds, 3),
    } | _given(method=report.method, coverage=report.coverage, error=report.error)


def _profile(profile: ProfileUse) -> dict[str, Any]:
    shown: dict[str, Any] = {"status": profile.status}
    return shown | _given(id=str(profile.id) if profile.id else None, reason=profile.reason)


def _given(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
