"""The graph channel: what the query names, and what lies within two stored links of it or of a best hit.

Links are the edges between pages; entities are attributes of claims. Learned strength is not known here.
"""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from apps.core.db.wire import uuids

from .filters import Restriction
from .names import Names

BEST_HITS = 6
"""Hits of the other channels from which a walk starts."""
FAN_OUT = 24
"""Neighbours of one page that a walk goes on to, the strongest first."""

_NEIGHBOURS = """
  SELECT e.slug, max(e.weight) AS weight FROM (
    SELECT dst AS slug, weight FROM graph_pageedge
    WHERE principal_id = ANY(%(owners)s::uuid[]) AND repo = {page}.repo AND src = {page}.slug
    UNION ALL
    SELECT src, weight FROM graph_pageedge
    WHERE principal_id = ANY(%(owners)s::uuid[]) AND repo = {page}.repo AND dst = {page}.slug) e
  GROUP BY e.slug ORDER BY max(e.weight) DESC, e.slug COLLATE "C" LIMIT %(fan_out)s"""

# A page is as near as its shortest walk from another page. Pages are walked over wherever they are; only rows
# that meet the restriction are returned, of each page its first part and the parts that were found anyway.
_STATEMENT = """
WITH origin AS MATERIALIZED (
  SELECT o.repo, o.slug, min(o.place) AS place FROM (
    SELECT p.repo, p.slug, 0 AS place FROM graph_passage p
    WHERE p.principal_id = ANY(%(owners)s::uuid[]) AND p.slug = ANY(%(slugs)s::text[])
    UNION ALL
    SELECT p.repo, p.slug, b.place FROM unnest(%(best)s::uuid[]) WITH ORDINALITY AS b(id, place)
    JOIN graph_passage p ON p.node_id = b.id WHERE p.slug IS NOT NULL) o
  GROUP BY 1, 2),
near AS MATERIALIZED (
  SELECT o.repo, o.slug AS origin, o.place, n.slug, n.weight
  FROM origin o CROSS JOIN LATERAL ({from_origin}) n),
around AS MATERIALIZED (
  SELECT f.repo, f.slug AS origin, n.slug, n.weight
  FROM (SELECT DISTINCT repo, slug FROM near) f CROSS JOIN LATERAL ({from_near}) n),
reached AS MATERIALIZED (
  SELECT DISTINCT ON (r.repo, r.slug) r.* FROM (
    SELECT repo, slug, 0 AS hops, 0 AS place, 1::float8 AS weight FROM origin WHERE place = 0
    UNION ALL
    SELECT repo, slug, 1, place, weight FROM near
    UNION ALL
    SELECT near.repo, around.slug, 2, near.place, around.weight
    FROM near JOIN around ON around.repo = near.repo AND around.origin = near.slug
    WHERE around.slug <> near.origin) r
  ORDER BY r.repo, r.slug, r.hops, r.place, r.weight DESC),
linked AS (
  SELECT n.id, r.hops, r.place, r.weight, row_number() OVER (
    PARTITION BY r.repo, r.slug
    ORDER BY array_position(%(owners)s::uuid[], n.principal_id), p.path, p.part, n.id) AS part
  FROM reached r
  JOIN graph_passage p ON p.principal_id = ANY(%(owners)s::uuid[]) AND p.slug = r.slug AND p.repo = r.repo
  JOIN graph_node n ON n.id = p.node_id
  WHERE {conditions}
  UNION ALL
  SELECT n.id, 0, 0, 1, 1
  FROM (SELECT DISTINCT node_id FROM graph_entity
        WHERE principal_id = ANY(%(owners)s::uuid[]) AND entity_key = ANY(%(keys)s::text[])) e
  JOIN graph_node n ON n.id = e.node_id LEFT JOIN graph_passage p ON p.node_id = n.id
  WHERE {conditions})
SELECT l.id, min(l.hops), extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000
FROM linked l WHERE l.part = 1 OR l.id = ANY(%(found)s::uuid[])
GROUP BY l.id ORDER BY min(l.hops), min(l.place), max(l.weight) DESC, l.id LIMIT %(depth)s
"""


def statement(
    names: Names, best: Sequence[UUID], found: Iterable[UUID], restriction: Restriction, depth: int
) -> tuple[str, dict[str, Any]]:
    """SQL and values; rows are (node id, hops, milliseconds), nearest first.

    Args:
        best: hits to start from, best first.
        found: nodes of the pool; those of a reached page are returned, too.
    """
    sql = _STATEMENT.format(
        from_origin=_NEIGHBOURS.format(page="o"),
        from_near=_NEIGHBOURS.format(page="f"),
        conditions=restriction.eligible(),
    )
    values = {
        "owners": uuids(restriction.owners),
        "slugs": list(names.slugs),
        "keys": list(names.keys),
        "best": uuids(best),
        "found": uuids(found),
        "fan_out": FAN_OUT,
        "depth": depth,
    }
    return sql, values | restriction.values
