"""Neighbours in a conversation: turns that stand beside a found one answer with it."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from apps.retrieval.candidates import Candidate
from apps.retrieval.candidates.filters import Restriction
from apps.retrieval.candidates.pool import COLUMNS, attributes
from apps.retrieval.policy import SessionInheritance
from apps.retrieval.scoring import Scored

# Each place is one range of the session index; OFFSET 0 keeps it that.
_NEIGHBOURS = """
SELECT s.source, {columns}, NULL::float8
FROM unnest(%(sources)s::uuid[], %(s_owners)s::uuid[], %(s_repos)s::text[], %(s_sessions)s::text[],
            %(s_positions)s::int[]) AS s(source, owner, repo, session, position),
     LATERAL (SELECT * FROM graph_passage b
              WHERE b.principal_id = s.owner AND b.repo = s.repo AND b.session = s.session
                AND b."position" BETWEEN s.position - %(distance)s AND s.position + %(distance)s
                AND b.node_id <> s.source OFFSET 0) p
     JOIN graph_node n ON n.id = p.node_id
WHERE n.archived_at IS NULL AND n.superseded_at IS NULL{conditions}
ORDER BY n.id
"""


def neighbours(
    cursor: Any, ranked: Sequence[Scored], restriction: Restriction, policy: SessionInheritance
) -> list[tuple[UUID, Candidate]]:
    """(source, neighbour) pairs beside the first rows, best source first; the request's filters hold for them."""
    if not policy.enabled or not policy.top or not policy.distance:
        return []
    places = [
        node
        for node in (row.candidate.node for row in ranked[: policy.top])
        if node.session is not None and node.position is not None
    ]
    if not places:
        return []
    conditions = "".join(f" AND {condition}" for condition in (*restriction.node, *restriction.passage))
    values = {
        "sources": [node.id for node in places],
        "s_owners": [node.principal_id for node in places],
        "s_repos": [node.repo for node in places],
        "s_sessions": [node.session for node in places],
        "s_positions": [node.position for node in places],
        "distance": policy.distance,
    }
    cursor.execute(_NEIGHBOURS.format(columns=COLUMNS, conditions=conditions), values | restriction.values)
    order = {node.id: number for number, node in enumerate(places)}
    rows = sorted(cursor.fetchall(), key=lambda row: (order[row[0]], row[1]))
    return [(row[0], Candidate(attributes(row[1:]))) for row in rows]
