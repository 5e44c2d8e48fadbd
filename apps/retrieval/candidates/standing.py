"""The pinned channel: what is pinned, and standing claims, whatever is asked."""

from typing import Any

from apps.core.db.wire import uuids
from apps.graph.models.nodes import STANDING, STANDING_PLACE

from .filters import Restriction

LEAST_CONFIDENCE = 0.3
"""Of a standing claim; what is pinned stands whatever its confidence."""

# Of each owner the first rows of the index of standing nodes.
_STATEMENT = f"""
SELECT s.id, extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000
FROM unnest(%(owners)s::uuid[]) AS o(owner) CROSS JOIN LATERAL (
  SELECT n.id, {STANDING_PLACE} AS place, n.updated_at
  FROM graph_node n{{passage}}
  WHERE n.principal_id = o.owner AND {STANDING} AND (n.pinned OR n.confidence >= %(least_confidence)s)
    AND {{conditions}}
  ORDER BY {STANDING_PLACE}, n.updated_at DESC, n.id LIMIT %(depth)s) s
ORDER BY s.place, s.updated_at DESC, s.id LIMIT %(depth)s
"""


def statement(restriction: Restriction, depth: int) -> tuple[str, dict[str, Any]]:
    """SQL and values; rows are (node id, milliseconds): pinned, then preferences, decisions, patterns, newest first."""
    passage = " JOIN graph_passage p ON p.node_id = n.id" if restriction.passage else ""
    values = {
        "owners": uuids(restriction.owners),
        "least_confidence": LEAST_CONFIDENCE,
        "depth": depth,
    }
    return (
        _STATEMENT.format(passage=passage, conditions=restriction.eligible()),
        values | restriction.values,
    )
