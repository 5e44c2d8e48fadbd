"""Activation: what a write does to it, and how it reads as of a time. It ranks nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from apps.core import clock
from apps.core.db import cursors
from apps.traces.decay import decay, decay_sql
from apps.traces.models import Activation
from apps.traces.policy import MemoryPolicy

ADDED = "unnest(%(ids)s::uuid[], %(source_ids)s::text[], %(retrieved)s::float8[], %(usage)s::float8[])"
"""SQL of the rows that `upsert_sql` adds, out of parameters of equal length."""

_LOCK = """
SELECT source_id, retrieved, usage, updated_at FROM traces_activation WHERE source_id = ANY (%s)
ORDER BY source_id FOR UPDATE
"""

Row = tuple[str, float, float, datetime]


@dataclass(frozen=True, slots=True)
class ActivationView:
    """Both channels decayed to `as_of`; `updated_at` is the last write, None where there was none."""

    retrieved: float
    usage: float
    updated_at: datetime | None
    as_of: datetime

    def with_usage(self, increment: float, at: datetime, policy: MemoryPolicy) -> "ActivationView":
        """After a write of `increment` at `at`; never dated before the last write."""
        usage = min(policy.caps.usage, self.usage + increment)
        return replace(self, usage=usage, updated_at=max(at, self.updated_at or at))

    def document(self) -> dict[str, Any]:
        return {
            "retrieved": self.retrieved,
            "usage": self.usage,
            "total": self.retrieved + self.usage,
            "updated_at": clock.iso(self.updated_at) if self.updated_at else None,
            "as_of": clock.iso(self.as_of),
        }


def upsert_sql(rows: str) -> str:
    """SQL that adds to the activation of sources and returns (source_id, retrieved, usage, updated_at).

    `rows` is SQL of a set of (id, source_id, retrieved to add, usage to add). Parameters: workspace, principal,
    now, half_life_s, retrieved_cap, usage_cap. Rows are taken by ascending source id, the order of all writers.
    Both channels decay to max(now, last write); a clock that steps back moves nothing back.
    """
    at = "greatest(a.updated_at, excluded.updated_at)"
    retrieved = decay_sql("a.retrieved", "a.updated_at", at, "%(half_life_s)s::float8")
    usage = decay_sql("a.usage", "a.updated_at", at, "%(half_life_s)s::float8")
    return f"""
INSERT INTO traces_activation AS a (id, workspace_id, principal_id, source_id, retrieved, usage, updated_at)
SELECT added.id, %(workspace)s, %(principal)s, added.source_id,
  least(added.retrieved, %(retrieved_cap)s::float8), least(added.usage, %(usage_cap)s::float8),
  %(now)s::timestamptz
FROM {rows} AS added (id, source_id, retrieved, usage) ORDER BY added.source_id COLLATE "C"
ON CONFLICT (principal_id, source_id) DO UPDATE SET
  retrieved = least(%(retrieved_cap)s::float8, {retrieved} + excluded.retrieved),
  usage = least(%(usage_cap)s::float8, {usage} + excluded.usage),
  updated_at = {at}
RETURNING source_id, retrieved, usage, updated_at
"""


def read_activation(
    source_ids: Sequence[str], *, as_of: datetime, half_life_s: float
) -> dict[str, ActivationView]:
    """The activation of every source id asked for, decayed to `as_of`; nothing is written."""
    rows = Activation.objects.filter(source_id__in=list(source_ids))
    named = rows.values_list("source_id", "retrieved", "usage", "updated_at")
    return _views(named, source_ids, as_of, half_life_s)


def lock_activation(
    source_ids: Sequence[str], *, as_of: datetime, half_life_s: float
) -> dict[str, ActivationView]:
    """The same, with the rows kept from other writers until the transaction ends, in the order of all writers."""
    rows = cursors.run(_LOCK, [list(source_ids)]).fetchall()
    return _views(rows, source_ids, as_of, half_life_s)


def _views(
    rows: Iterable[Row], source_ids: Sequence[str], as_of: datetime, half_life_s: float
) -> dict[str, ActivationView]:
    found = {
        source_id: ActivationView(
            decay(retrieved, updated_at, as_of, half_life_s),
            decay(usage, updated_at, as_of, half_life_s),
            updated_at,
            as_of,
        )
        for source_id, retrieved, usage, updated_at in rows
    }
    nothing = ActivationView(0.0, 0.0, None, as_of)
    return {source_id: found.get(source_id, nothing) for source_id in source_ids}
