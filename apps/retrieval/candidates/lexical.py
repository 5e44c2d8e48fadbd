"""The lexical channel: exact BM25 over postings, in one statement."""

from typing import Any

from .filters import Restriction
from .lexicon import Plan

K1, B = 1.2, 0.75

# Each term's postings are a range of the key, read through OFFSET 0 so that no other plan is thought of.
_HITS = """
SELECT t.owner, h.node_no, t.unit, h.tf * t.weight AS tf, h.len
FROM t CROSS JOIN LATERAL (
  SELECT node_no, tf, len FROM graph_posting
  WHERE principal_id = t.owner AND term_no = t.term_no OFFSET 0) h
WHERE {which}"""
_ADDED_UP = """
SELECT owner, node_no, unit, sum(tf) AS tf, min(len) AS len FROM ({hits}) each_term
GROUP BY owner, node_no, unit"""

_STATEMENT = """
WITH t AS MATERIALIZED (
  SELECT * FROM unnest(%(t_owner)s::uuid[], %(t_no)s::int[], %(t_unit)s::int[], %(t_weight)s::float8[],
                       %(t_generates)s::bool[]) AS t(owner, term_no, unit, weight, generates)),
u AS MATERIALIZED (
  SELECT * FROM unnest(%(u_unit)s::int[], %(u_group)s::int[], %(u_idf)s::float8[], %(u_mean)s::float8[])
    AS u(unit, grp, idf, mean)),
first_hits AS MATERIALIZED ({first}),
{rest}
scored AS (
  SELECT h.owner, h.node_no,
         sum(u.idf * h.tf * {k1_plus_1} / (h.tf + {k1} * ({one_minus_b} + {b} * h.len / u.mean))) AS bm25,
         count(DISTINCT u.grp) = %(groups)s AS every_group
  FROM hits h JOIN u ON u.unit = h.unit
  GROUP BY h.owner, h.node_no)
SELECT {node_id}, s.bm25, s.every_group, extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000
FROM (SELECT s.* FROM scored s{filter}
      ORDER BY s.every_group DESC, s.bm25 DESC, s.owner, s.node_no LIMIT %(depth)s) s
JOIN graph_node r ON r.principal_id = s.owner AND r.node_no = s.node_no
ORDER BY s.every_group DESC, s.bm25 DESC, r.id
"""
_REST = """
found AS MATERIALIZED (SELECT DISTINCT owner, node_no FROM first_hits),
later_hits AS ({later}),
hits AS (
  SELECT * FROM first_hits UNION ALL
  SELECT l.* FROM later_hits l JOIN found ON found.owner = l.owner AND found.node_no = l.node_no),"""
_NO_REST = "hits AS (SELECT * FROM first_hits),"


def statement(plan: Plan, restriction: Restriction, depth: int) -> tuple[str, dict[str, Any]]:
    """SQL and values; rows are (node id, BM25, whether every group matched, milliseconds), best first."""
    first, later = _HITS.format(which="t.generates"), _HITS.format(which="NOT t.generates")
    if not plan.one_term:
        first, later = _ADDED_UP.format(hits=first), _ADDED_UP.format(hits=later)
    limited = any(not term.generates for term in plan.terms)
    sql = _STATEMENT.format(
        first=first,
        rest=_REST.format(later=later) if limited else _NO_REST,
        k1=K1,
        k1_plus_1=K1 + 1,
        b=B,
        one_minus_b=1 - B,
        node_id="r.id",
        filter=restriction.join("n.principal_id = s.owner AND n.node_no = s.node_no"),
    )
    values = {
        "t_owner": [term.owner for term in plan.terms],
        "t_no": [term.term_no for term in plan.terms],
        "t_unit": [term.unit for term in plan.terms],
        "t_weight": [term.weight for term in plan.terms],
        "t_generates": [term.generates for term in plan.terms],
        "u_unit": list(range(len(plan.units))),
        "u_group": [unit.group for unit in plan.units],
        "u_idf": [unit.idf for unit in plan.units],
        "u_mean": [unit.mean_length for unit in plan.units],
        "groups": plan.groups,
        "depth": depth,
    }
    return sql, values | restriction.values
