"""Neighbours: turns beside a found one of a conversation, parts beside a found one of a document, answer with it."""

import json
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from psycopg import Cursor

from apps.retrieval.candidates import Attributes, Candidate
from apps.retrieval.candidates.filters import Restriction
from apps.retrieval.candidates.pool import COLUMNS, attributes
from apps.retrieval.policy import SessionInheritance
from apps.retrieval.scoring import Scored

# Each place is one range of an index; OFFSET 0 keeps it that.
_NEIGHBOURS = """
SELECT s.source, {columns}, NULL::float8
FROM unnest(%(sources)s::uuid[], %(s_owners)s::uuid[], %(s_repos)s::text[], {of_places}) AS s(
       source, owner, repo, {names}),
     LATERAL (SELECT * FROM graph_passage b
              WHERE b.principal_id = s.owner AND b.repo = s.repo AND {beside}
                AND b.node_id <> s.source OFFSET 0) p
     JOIN graph_node n ON n.id = p.node_id
WHERE n.archived_at IS NULL AND n.superseded_at IS NULL{conditions}
ORDER BY n.id
"""
_TURNS = {
    "of_places": "%(s_sessions)s::text[], %(s_positions)s::int[]",
    "names": "session, position",
    "beside": "b.session = s.session "
    'AND b."position" BETWEEN s.position - %(distance)s AND s.position + %(distance)s',
}
_PARTS = {
    "of_places": "%(s_types)s::text[], %(s_identities)s::jsonb[], %(s_parts)s::int[]",
    "names": "type, identity, part",
    "beside": "b.type = s.type AND b.identity = s.identity "
    "AND b.part BETWEEN s.part - %(distance)s AND s.part + %(distance)s",
}

Pairs = list[tuple[UUID, Candidate]]


def neighbours(
    cursor: Cursor[Any], ranked: Sequence[Scored], restriction: Restriction, policy: SessionInheritance
) -> Pairs:
    """(source, neighbour) pairs beside the first rows, best source first; the request's filters hold for them."""
    if not policy.top or not policy.distance:
        return []
    first = [row.candidate.node for row in ranked[: policy.top]]
    found: Pairs = []
    if policy.enabled:
        found += _beside(cursor, [n for n in first if _is_turn(n)], restriction, policy, _TURNS, _turns)
    if policy.documents:
        parts = [n for n in first if n.session is None and n.part is not None]
        found += _beside(cursor, parts, restriction, policy, _PARTS, _parts)
    order = {node.id: number for number, node in enumerate(first)}
    return sorted(found, key=lambda pair: (order[pair[0]], pair[1].node.id))


def _is_turn(node: Attributes) -> bool:
    return node.session is not None and node.position is not None


def _turns(places: Sequence[Attributes]) -> dict[str, list[Any]]:
    return {
        "s_sessions": [node.session for node in places],
        "s_positions": [node.position for node in places],
    }


def _parts(places: Sequence[Attributes]) -> dict[str, list[Any]]:
    return {
        "s_types": [node.type for node in places],
        "s_identities": [json.dumps(node.identity) for node in places],
        "s_parts": [node.part for node in places],
    }


def _beside(
    cursor: Cursor[Any],
    places: Sequence[Attributes],
    restriction: Restriction,
    policy: SessionInheritance,
    form: dict[str, str],
    values_of: Callable[[Sequence[Attributes]], dict[str, list[Any]]],
) -> Pairs:
    if not places:
        return []
    conditions = "".join(f" AND {condition}" for condition in (*restriction.node, *restriction.passage))
    values: dict[str, Any] = {
        "sources": [node.id for node in places],
        "s_owners": [node.principal_id for node in places],
        "s_repos": [node.repo for node in places],
        "distance": policy.distance,
    }
    sql = _NEIGHBOURS.format(columns=COLUMNS, conditions=conditions, **form)
    cursor.execute(sql, values | values_of(places) | restriction.values)
    return [(row[0], Candidate(attributes(row[1:]))) for row in cursor.fetchall()]
