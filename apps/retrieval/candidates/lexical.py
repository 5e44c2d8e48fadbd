"""The lexical channel: exact BM25 over postings, in one statement."""

from typing import Any

from apps.core.db.wire import uuids

from .arrays import array
from .filters import Restriction
from .lexicon import Plan

K1, B = 1.2, 0.75

# A node is one integer here, its owner's place among the owners above its number: sorting and hashing pairs of owner
# and number would cost more than reading the postings. It is taken apart only for what gets in or is filtered. Each
# term's postings are a range of the key, read through OFFSET 0 so that no other plan is thought of.
_T = """t AS MATERIALIZED (
  SELECT * FROM unnest(%(t_owner)s::uuid[], %(t_base)s::bigint[], %(t_no)s::int[], %(t_unit)s::int[],
                       %(t_weight)s::float8[], %(t_gain)s::float8[], %(t_norm)s::float8[], %(t_generates)s::bool[])
    AS t(owner, base, term_no, unit, weight, gain, norm, generates))"""
_POSTINGS = """
FROM t CROSS JOIN LATERAL (
  SELECT node_no, tf, len FROM graph_posting
  WHERE principal_id = t.owner AND term_no = t.term_no OFFSET 0) h
WHERE {which}"""
_ONE_TERM = """
SELECT t.base + h.node_no AS key,
       t.gain * h.tf * t.weight / (h.tf * t.weight + {flat} + t.norm * h.len) AS part {postings}"""
_MANY_TERMS = """
SELECT key, gain * tf / (tf + {flat} + norm * len) AS part FROM (
  SELECT t.base + h.node_no AS key, t.unit, min(t.gain) AS gain, min(t.norm) AS norm,
         sum(h.tf * t.weight) AS tf, min(h.len) AS len {postings} GROUP BY 1, 2) each_unit"""

# A number is a range that is read in order, as a term is in `lexicon`: only the index of numbers can do that. Asked for
# by equality, other indexes of an owner's nodes cost nearly as little on paper, and beside hundreds of owners that of
# digests was taken, with all nodes of the owner filtered for each row.
_NODE = """CROSS JOIN LATERAL (
  SELECT * FROM graph_node WHERE principal_id = (%(owners)s::uuid[])[1 + (s.key >> 32)]
    AND node_no >= (s.key & 4294967295)::int AND node_no <= (s.key & 4294967295)::int
  ORDER BY node_no LIMIT 1 OFFSET 0) n"""
_STATEMENT = """
WITH {t},
{hits},
scored AS (
  SELECT key, sum(part) AS bm25, count(*) = %(groups)s AS every_group FROM hits GROUP BY key)
SELECT n.id, s.bm25, s.every_group, extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000
FROM (SELECT s.* FROM scored s{filter}
      ORDER BY s.every_group DESC, s.bm25 DESC, s.key LIMIT %(depth)s) s
{node}
ORDER BY s.every_group DESC, s.bm25 DESC, n.id
"""
# What was found is looked up in a hash table: a join was once planned for a few rows, as a loop within a loop over
# tens of thousands. `IS TRUE` keeps the look-up from becoming one.
_LIMITED = """first_hits AS MATERIALIZED ({first}),
found AS MATERIALIZED (SELECT DISTINCT key FROM first_hits),
hits AS (
  SELECT * FROM first_hits UNION ALL
  SELECT l.* FROM ({later}) l WHERE (l.key IN (SELECT key FROM found)) IS TRUE)"""


def statement(plan: Plan, restriction: Restriction, depth: int) -> tuple[str, dict[str, Any]]:
    """SQL and values; rows are (node id, BM25, whether every group matched, milliseconds), best first.

    A node is of one kind and a unit is a group in one kind, so that the rows of a node count its groups.
    """
    limited = any(not term.generates for term in plan.terms)
    first = _hits(plan, "t.generates")
    hits = (
        _LIMITED.format(first=first, later=_hits(plan, "NOT t.generates"))
        if limited
        else f"hits AS ({first})"
    )
    sql = _STATEMENT.format(
        t=_T,
        hits=hits,
        filter=restriction.join(_NODE, looked_up=True),
        node=_NODE,
    )
    return sql, _values(plan, restriction) | {"depth": depth} | restriction.values


def _hits(plan: Plan, which: str) -> str:
    """One row a node and unit: the node's key and the unit's part of its score."""
    postings, flat = _POSTINGS.format(which=which), K1 * (1 - B)
    if plan.one_term:
        return _ONE_TERM.format(flat=flat, postings=postings)
    return _MANY_TERMS.format(flat=flat, postings=postings)


def _values(plan: Plan, restriction: Restriction) -> dict[str, Any]:
    # By ascending id, as equal scores are ordered.
    owners = sorted(restriction.owners)
    place = {owner: number for number, owner in enumerate(owners)}
    units = [plan.units[term.unit] for term in plan.terms]
    return {
        "owners": uuids(owners),
        "t_owner": uuids(term.owner for term in plan.terms),
        "t_base": array(place[term.owner] << 32 for term in plan.terms),
        "t_no": array(term.term_no for term in plan.terms),
        "t_unit": array(term.unit for term in plan.terms),
        "t_weight": array(term.weight for term in plan.terms),
        "t_gain": array(unit.idf * (K1 + 1) for unit in units),
        "t_norm": array(K1 * B / unit.mean_length for unit in units),
        "t_generates": array(term.generates for term in plan.terms),
        "groups": plan.groups,
    }
