"""Uses: a source climbs from selected over validated to used, one stage at a time, in one trace."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.core import clock
from apps.core.db import cursors
from apps.core.db.sessions import current_principal
from apps.core.ids import uuid7
from apps.traces.activation import ADDED, ActivationView, lock_activation, upsert_sql
from apps.traces.exceptions import StageOrderViolation, UnknownSource, UnknownTrace
from apps.traces.keys import once_per_trace
from apps.traces.models import STAGES, ReceiptKind
from apps.traces.policy import MemoryPolicy, policy_in_effect
from apps.traces.receipts import NewReceipt, head
from apps.traces.schemas import UseEntry

TOOL = "traces.uses"


@dataclass(slots=True)
class _Climb:
    """A source of the trace while its batch is worked off."""

    stage: int
    times: list[datetime | None]
    activation: ActivationView
    gained: float = 0.0
    moved: bool = False

    def step(self, stage: int, at: datetime, policy: MemoryPolicy) -> bool:
        """Take one step. False where it is behind already; raises StageOrderViolation for a jump."""
        if stage <= self.stage:
            return False
        if stage > self.stage + 1:
            raise StageOrderViolation
        increment = float(getattr(policy.increments, STAGES[stage]))
        self.stage, self.times[stage - 1], self.moved = stage, at, True
        self.gained += increment
        self.activation = self.activation.with_usage(increment, at, policy)
        return True


def record_uses(*, trace_id: UUID, idempotency_key: str, uses: Sequence[UseEntry]) -> dict[str, Any]:
    """Climb the stages of a batch, all or none, and answer with the action receipt.

    In the session of the principal. The same key and payload give the same receipt again. Raises
    IdempotencyConflict, UnknownTrace, UnknownSource or StageOrderViolation; then nothing is changed.
    """
    payload = {"trace_id": str(trace_id), "uses": [use.model_dump() for use in uses]}
    return once_per_trace(
        tool=TOOL,
        key=idempotency_key,
        payload=payload,
        run=lambda receipt_id: _climb(trace_id, uses, receipt_id),
    )


def _climb(trace_id: UUID, uses: Sequence[UseEntry], receipt_id: UUID) -> NewReceipt:
    policy = policy_in_effect(current_principal().workspace_id)
    names = sorted({use.source_id for use in uses})
    expires_at, stages = load_stages(trace_id, names)
    now = clock.now()
    half_life = policy.document.half_life_s
    activation = lock_activation(names, as_of=now, half_life_s=half_life)
    climbs = {name: _Climb(times[0], list(times[1]), activation[name]) for name, times in stages.items()}
    changes = []
    for use in uses:
        climb = climbs.get(use.source_id)
        if climb is None:
            raise UnknownSource
        applied = climb.step(STAGES.index(use.stage), now, policy.document)
        changes.append(_change(use, applied, climb.activation))
    moved = {name: climb for name, climb in climbs.items() if climb.moved}
    if moved:
        _write(trace_id, moved, now, policy.document)
    body = head(receipt_id=receipt_id, trace_id=trace_id, at=now) | {
        "non_applied_reason": None,
        "uses": [use.model_dump() for use in uses],
        "saved_sources": [],
        "changes": changes,
    }
    return NewReceipt(receipt_id, trace_id, ReceiptKind.USE, now, body, policy.id, expires_at)


def _change(use: UseEntry, applied: bool, activation: ActivationView) -> dict[str, Any]:
    return use.model_dump() | {"applied": applied, "activation": activation.document()}


Times = tuple[datetime | None, datetime | None, datetime | None]


def load_stages(trace_id: UUID, source_ids: Sequence[str]) -> tuple[datetime, dict[str, tuple[int, Times]]]:
    """When the trace expires, and the stage and its times of those of the sources that it holds.

    One query, the same whether the trace is absent or not the caller's. Raises UnknownTrace.
    """
    rows = cursors.run(
        """
            SELECT t.expires_at, s.source_id, coalesce(u.stage, 0), u.selected_at, u.validated_at, u.used_at
            FROM traces_trace t
            LEFT JOIN traces_source s ON s.principal_id = t.principal_id AND s.trace_id = t.id
              AND s.source_id = ANY (%s)
            LEFT JOIN traces_use u ON u.principal_id = t.principal_id AND u.trace_id = t.id
              AND u.source_id = s.source_id
            WHERE t.id = %s
            """,
        [list(source_ids), trace_id],
    ).fetchall()
    if not rows:
        raise UnknownTrace
    stages = {row[1]: (row[2], (row[3], row[4], row[5])) for row in rows if row[1] is not None}
    return rows[0][0], stages


def _write(trace_id: UUID, moved: Mapping[str, _Climb], now: datetime, policy: MemoryPolicy) -> None:
    principal = current_principal()
    names = sorted(moved)
    climbs = [moved[name] for name in names]
    params: dict[str, Any] = {
        "trace": trace_id,
        "workspace": principal.workspace_id,
        "principal": principal.principal_id,
        "use_ids": [uuid7() for _ in names],
        "ids": [uuid7() for _ in names],
        "source_ids": names,
        "stages": [climb.stage for climb in climbs],
        "selected": [climb.times[0] for climb in climbs],
        "validated": [climb.times[1] for climb in climbs],
        "used": [climb.times[2] for climb in climbs],
        "retrieved": [0.0] * len(names),
        "usage": [climb.gained for climb in climbs],
        "retrieved_cap": policy.caps.retrieved,
        "usage_cap": policy.caps.usage,
        "half_life_s": policy.half_life_s,
        "now": now,
    }
    cursors.run(CLIMB, params)


CLIMB = f"""
WITH climbed AS (
  INSERT INTO traces_use (id, workspace_id, principal_id, trace_id, source_id, stage, selected_at, validated_at,
    used_at)
  SELECT u.id, %(workspace)s, %(principal)s, %(trace)s, u.source_id, u.stage, u.selected_at, u.validated_at,
    u.used_at
  FROM unnest(%(use_ids)s::uuid[], %(source_ids)s::text[], %(stages)s::int2[], %(selected)s::timestamptz[],
    %(validated)s::timestamptz[], %(used)s::timestamptz[])
    AS u (id, source_id, stage, selected_at, validated_at, used_at)
  ON CONFLICT (principal_id, trace_id, source_id) DO UPDATE SET stage = excluded.stage,
    selected_at = excluded.selected_at, validated_at = excluded.validated_at, used_at = excluded.used_at
)
{upsert_sql(ADDED)}
"""
