"""Saving a trace: its sources, paths and activation in one statement, so that all exist or none."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from apps.core import canonical, policies
from apps.core.db.cursors import Question, Rows, ask
from apps.core.db.sessions import current_principal
from apps.core.db.wire import floats, uuids
from apps.core.ids import uuid7
from apps.core.text import refused_by
from apps.traces.activation import ADDED, ActivationView, upsert_sql
from apps.traces.exceptions import SaveFailed
from apps.traces.locks import sharing_policy
from apps.traces.models import MAX_SOURCES
from apps.traces.policy import KIND as MEMORY
from apps.traces.policy import PolicyInEffect, policy_of
from apps.traces.recording import RecordedSource, Recording

MAX_CHARACTERS = 300_000
"""Of the canonical JSON of request, settings and sources."""


@dataclass(frozen=True, slots=True)
class NewTrace:
    """An answer to be saved. `request` holds every field of the call but the query.

    latency_ms: from the call to the saving. retrieval_receipt_id: written by the caller in the same transaction.
    """

    mode: str
    query: str | None
    request: Mapping[str, Any]
    settings: Mapping[str, Any]
    scopes: tuple[str, ...] | None
    recording: Recording
    recorded_at: datetime
    latency_ms: int
    id: UUID = field(default_factory=uuid7)
    retrieval_receipt_id: UUID | None = None
    profile_id: UUID | None = None
    context_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class SavedTrace:
    """What the answer says of the saved trace. `activation` is by source id, as just written."""

    id: UUID
    recorded_at: datetime
    expires_at: datetime
    policy: PolicyInEffect
    activation: Mapping[str, ActivationView]
    retrieval_receipt_id: UUID | None = None


class Saving:
    """What saving a trace asks before it writes, in the round trip that begins the session.

    The lock comes first: a policy that is read under it stays in effect until the trace is committed.
    """

    def __init__(self, workspace_id: UUID) -> None:
        self._policy_id = policies.ids_in_effect(workspace_id, MEMORY)
        self.questions: tuple[Question[Any], ...] = (sharing_policy(), self._policy_id)

    @property
    def policy(self) -> PolicyInEffect:
        """The policy that rules; once the questions were asked."""
        return policy_of(*self._policy_id.answer)


def save_trace(*, new: NewTrace) -> SavedTrace:
    """Save a trace with its sources, paths and activation, in the session of its principal.

    Raises SaveFailed beyond 300 sources or 300,000 characters.
    """
    saving = Saving(current_principal().workspace_id)
    ask(*saving.questions)
    written = writing_trace(new=new, policy=saving.policy)
    ask(written)
    return written.answer


def writing_trace(*, new: NewTrace, policy: PolicyInEffect) -> Question[SavedTrace]:
    """The one statement that writes all of a trace, to be sent with what is written beside it, in the session of its
    principal after the questions of `Saving`. Raises SaveFailed beyond 300 sources or 300,000 characters."""
    principal = current_principal()
    if len(new.recording.sources) > MAX_SOURCES:
        raise SaveFailed("too many sources")
    sources = [_source_row(source) for source in new.recording.sources]
    expires_at = new.recorded_at + timedelta(days=policy.document.retention_days.trace)
    params = _params(new, sources, policy, expires_at) | {
        "principal": principal.principal_id,
        "workspace": principal.workspace_id,
    }
    _check_size(new, sources, sum(len(params[name]) for name in ("request", "settings", "sources")))

    def saved(rows: Rows) -> SavedTrace:
        activation = {row[0]: ActivationView(row[1], row[2], row[3], new.recorded_at) for row in rows}
        return SavedTrace(new.id, new.recorded_at, expires_at, policy, activation, new.retrieval_receipt_id)

    return Question(SAVE, params, saved)


def _check_size(new: NewTrace, sources: list[dict[str, Any]], sent: int) -> None:
    """`sent` are the characters of these as they are sent: with spaces, escapes and ids, never fewer than kept."""
    # Canonical JSON is slow to write; only where what is sent comes near the bound does the difference count.
    if sent <= MAX_CHARACTERS // 2:
        return
    kept = {"request": dict(new.request), "settings": dict(new.settings), "sources": sources}
    if len(canonical.dumps(kept).decode()) > MAX_CHARACTERS:
        raise SaveFailed("too many characters")


def _source_row(source: RecordedSource) -> dict[str, Any]:
    """The source as JSON; absent members become NULL."""
    row: dict[str, Any] = {
        "source_id": source.source_id,
        "repo": source.identity.repo,
        "type": source.identity.type,
        "identity": source.identity.identity,
        "version": source.identity.version,
        "content_source": source.identity.content_source,
        "axes": list(source.axes),
        "components": dict(source.components),
        "location": source.location,
        "node_id": str(source.node_id) if source.node_id else None,
        "rank": source.rank,
        "graph_rank": source.graph_rank,
        "hop": source.hop,
        "score": source.score,
        "folded_under": source.folded_under,
        "index_updated_at": source.index_updated_at,
    }
    if source.paths:
        row["paths"] = [[edge.shown() | {"key": edge.key} for edge in path] for path in source.paths]
    return {name: value for name, value in row.items() if value is not None}


def _params(
    new: NewTrace, sources: list[dict[str, Any]], policy: PolicyInEffect, expires_at: datetime
) -> dict[str, Any]:
    memory = policy.document
    placed = [row | {"id": str(uuid7()), "position": number} for number, row in enumerate(sources)]
    steps = [
        {"id": str(uuid7()), "source_row_id": row["id"], "path_no": path_no, "step": step} | edge
        for row in placed
        for path_no, path in enumerate(row.get("paths", ()))
        for step, edge in enumerate(path)
    ]
    keeps_query = new.query is not None and refused_by(new.query) is None
    return {
        "id": new.id,
        "recorded_at": new.recorded_at,
        "mode": new.mode,
        "query": new.query if keeps_query else None,
        "request": json.dumps(new.request),
        "settings": json.dumps(new.settings),
        "recording": json.dumps(new.recording.document),
        "scopes": list(new.scopes) if new.scopes is not None else None,
        "source_count": len(sources),
        "policy": policy.id,
        "receipt": new.retrieval_receipt_id,
        "profile": new.profile_id,
        "latency_ms": new.latency_ms,
        "context_tokens": new.context_tokens,
        "expires_at": expires_at,
        "sources": json.dumps(placed),
        "steps": json.dumps(steps),
        "ids": uuids([uuid7() for _ in placed]),
        "source_ids": [row["source_id"] for row in placed],
        "retrieved": floats([memory.increments.retrieved] * len(placed)),
        "usage": floats([0.0] * len(placed)),
        "retrieved_cap": memory.caps.retrieved,
        "usage_cap": memory.caps.usage,
        "half_life_s": memory.half_life_s,
        "now": new.recorded_at,
    }


SAVE = f"""
WITH trace AS (
  INSERT INTO traces_trace (id, workspace_id, principal_id, recorded_at, mode, query, request, settings,
    recording, scopes, source_count, policy_id, retrieval_receipt_id, profile_id, latency_ms, context_tokens,
    retention_class, expires_at)
  VALUES (%(id)s, %(workspace)s, %(principal)s, %(recorded_at)s, %(mode)s, %(query)s, %(request)s::jsonb,
    %(settings)s::jsonb, %(recording)s::jsonb, %(scopes)s::text[], %(source_count)s, %(policy)s, %(receipt)s,
    %(profile)s, %(latency_ms)s, %(context_tokens)s, 'trace', %(expires_at)s)
), source AS (
  INSERT INTO traces_source (id, workspace_id, principal_id, trace_id, position, source_id, repo, type, identity,
    version, content_source, index_updated_at, node_id, axes, rank, graph_rank, hop, score, components, location,
    folded_under)
  SELECT s.id, %(workspace)s, %(principal)s, %(id)s, s.position, s.source_id, s.repo, s.type, s.identity,
    s.version, s.content_source, s.index_updated_at, s.node_id, s.axes, s.rank, s.graph_rank, s.hop, s.score,
    s.components, s.location, s.folded_under
  FROM jsonb_to_recordset(%(sources)s::jsonb) AS s (
    id uuid, position int2, source_id text, repo text, type text, identity jsonb, version text,
    content_source text, index_updated_at text, node_id uuid, axes text[], rank int2, graph_rank int2, hop int2,
    score float8, components jsonb, location text, folded_under int2)
), step AS (
  INSERT INTO traces_path_edge (id, workspace_id, principal_id, source_row_id, path_no, step, repo, src_slug,
    dst_slug, kind, edge_key)
  SELECT p.id, %(workspace)s, %(principal)s, p.source_row_id, p.path_no, p.step, p.repo, p.src, p.dst, p.kind,
    p.key
  FROM jsonb_to_recordset(%(steps)s::jsonb) AS p (
    id uuid, source_row_id uuid, path_no int2, step int2, repo text, src text, dst text, kind text, key text)
)
{upsert_sql(ADDED)}
"""
