"""Reads of outcomes: learned strength, credits, the page of a trace."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.feedback.models import Credit, EdgeStrength
from apps.traces.decay import decay


def strengths(edge_keys: Collection[str], *, as_of: datetime, half_life_s: float) -> dict[str, float]:
    """The strength of each edge as of a time; unknown ones are 0. One query."""
    rows = EdgeStrength.objects.filter(edge_key__in=edge_keys).values_list("edge_key", "strength", "updated_at")
    found = {key: decay(strength, updated_at, as_of, half_life_s) for key, strength, updated_at in rows}
    return {key: found.get(key, 0.0) for key in edge_keys}
