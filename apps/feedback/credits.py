"""The arithmetic of credits, set-based in the database; always under the principal's lock.

Credit and edge carry the same time `at` = max(now, last write of the edge), and decay is linear: therefore the
strength stays the sum of the active credits, each decayed from when it was given.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from apps.core.db.sessions import current_principal
from apps.core.ids import uuid7
from apps.traces.decay import decay_sql
from apps.traces.paths import Edge
from apps.traces.policy import MemoryPolicy

CONFIRMED, CAP_REACHED = "confirmed_path", "strength_cap_reached"
ALREADY, REVERSED = "trace_already_credited", "reversed_credit"

_AT = "greatest(%(now)s::timestamptz, coalesce(s.updated_at, %(now)s::timestamptz))"

CREDIT = f"""
WITH wanted AS (
  SELECT e.id, e.strength_id, e.edge_key FROM unnest(%(ids)s::uuid[], %(strength_ids)s::uuid[], %(keys)s::text[])
    AS e (id, strength_id, edge_key)
), fresh AS (
  SELECT w.*, {_AT} AS at, coalesce(s.strength, 0) AS strength, coalesce(s.updated_at, %(now)s) AS updated_at
  FROM wanted w
  LEFT JOIN feedback_edge_strength s ON s.principal_id = %(principal)s AND s.edge_key = w.edge_key
  WHERE NOT EXISTS (SELECT FROM feedback_credit c WHERE c.principal_id = %(principal)s
    AND c.trace_id = %(trace)s AND c.edge_key = w.edge_key)
), decayed AS (
  SELECT f.id, f.strength_id, f.edge_key, f.at,
    {decay_sql("f.strength", "f.updated_at", "f.at", "%(half_life_s)s::float8")} AS strength
  FROM fresh f
), earned AS (
  SELECT d.*, least(%(edge_delta)s::float8, greatest(0::float8, %(edge_cap)s::float8 - d.strength)) AS delta
  FROM decayed d
), strengthened AS (
  INSERT INTO feedback_edge_strength AS s (id, workspace_id, principal_id, edge_key, strength, updated_at)
  SELECT e.strength_id, %(workspace)s, %(principal)s, e.edge_key,
    least(%(edge_cap)s::float8, e.strength + e.delta), e.at
  FROM earned e ORDER BY e.edge_key
  ON CONFLICT (principal_id, edge_key) DO UPDATE SET strength = excluded.strength, updated_at = excluded.updated_at
), credited AS (
  INSERT INTO feedback_credit (id, workspace_id, principal_id, trace_id, edge_key, receipt_id, delta, credited_at,
    active)
  SELECT e.id, %(workspace)s, %(principal)s, %(trace)s, e.edge_key, %(receipt)s, e.delta, e.at, true
  FROM earned e
)
SELECT w.edge_key, e.delta FROM wanted w LEFT JOIN earned e ON e.edge_key = w.edge_key ORDER BY w.edge_key COLLATE "C"
"""

REVERSE = f"""
WITH lent AS (
  SELECT c.id, c.edge_key, c.delta, c.credited_at, s.strength, s.updated_at,
    greatest(%(now)s::timestamptz, s.updated_at) AS at
  FROM feedback_credit c
  JOIN feedback_edge_strength s ON s.principal_id = c.principal_id AND s.edge_key = c.edge_key
  WHERE c.principal_id = %(principal)s AND c.receipt_id = %(confirmation)s AND c.active
), removed AS (
  SELECT l.id, l.edge_key, l.at,
    {decay_sql("l.delta", "l.credited_at", "l.at", "%(half_life_s)s::float8")} AS removed,
    {decay_sql("l.strength", "l.updated_at", "l.at", "%(half_life_s)s::float8")} AS strength
  FROM lent l ORDER BY l.edge_key
), weakened AS (
  UPDATE feedback_edge_strength s SET strength = greatest(0::float8, r.strength - r.removed), updated_at = r.at
  FROM removed r WHERE s.principal_id = %(principal)s AND s.edge_key = r.edge_key
), reversed AS (
  UPDATE feedback_credit c SET active = false, reversed_by_id = %(receipt)s, reversed_at = r.at,
    reversed_delta = r.removed
  FROM removed r WHERE c.principal_id = %(principal)s AND c.id = r.id
)
SELECT r.edge_key, r.removed FROM removed r ORDER BY r.edge_key COLLATE "C"
"""


def edge_of(key: str) -> dict[str, str]:
    """An edge as the API shows it, from its key."""
    repo, src, dst, kind = json.loads(key)
    return {"repo": repo, "src": src, "dst": dst, "kind": kind}


def credit_edges(
    edges: Mapping[str, Edge], *, trace_id: UUID, receipt_id: UUID, now: datetime, policy: MemoryPolicy
) -> list[dict[str, Any]]:
    """Lend strength to edges, by ascending key, once a trace; the changes as the receipt shows them."""
    if not edges:
        return []
    keys = sorted(edges)
    rows = _run(
        CREDIT,
        now=now,
        policy=policy,
        receipt=receipt_id,
        trace=trace_id,
        keys=keys,
        ids=[uuid7() for _ in keys],
        strength_ids=[uuid7() for _ in keys],
    )
    return [_credited(edges[key], delta) for key, delta in rows]


def _credited(edge: Edge, delta: float | None) -> dict[str, Any]:
    if delta is None:
        return {"edge": edge.shown(), "delta": 0.0, "applied": False, "reason": ALREADY}
    reason = CONFIRMED if delta > 0 else CAP_REACHED
    return {"edge": edge.shown(), "delta": delta, "applied": delta > 0, "reason": reason}


def reverse_credits(
    confirmation_id: UUID, *, by: UUID, now: datetime, policy: MemoryPolicy
) -> list[dict[str, Any]]:
    """Take back what is still active of a confirmation, decayed; the changes as the receipt shows them."""
    rows = _run(REVERSE, now=now, policy=policy, receipt=by, confirmation=confirmation_id)
    return [
        {
            "edge": edge_of(key),
            "reversed_delta": removed,
            "applied": True,
            "reason": REVERSED,
            "confirmation_id": str(confirmation_id),
        }
        for key, removed in rows
    ]


def _run(sql: str, *, now: datetime, policy: MemoryPolicy, **params: Any) -> list[tuple[str, Any]]:
    principal = current_principal()
    params |= {
        "principal": principal.principal_id,
        "workspace": principal.workspace_id,
        "now": now,
        "half_life_s": policy.half_life_s,
        "edge_delta": policy.edge_delta,
        "edge_cap": policy.edge_cap,
    }
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())
