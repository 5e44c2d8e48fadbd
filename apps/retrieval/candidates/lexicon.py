"""From the words of a query to terms with numbers: a plan of which postings will be read.

Document frequencies are known before any posting is read, so what a query may cost is decided here.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import Cursor

from apps.core.db.wire import uuids
from apps.graph.analyser import Group
from apps.graph.models.indexes import CorpusKind

from .arrays import array
from .filters import Restriction
from .statistics import Statistics

MAX_GROUPS = 32
GENERATING_POSTINGS = 30_000
PREFIX_TERMS = 8
PREFIX_WEIGHT = 0.6

# OFFSET 0 keeps each term, and each range of terms, a look-up of its own. A plan made before the terms are known, as
# that of a prepared statement is, would otherwise read the whole lexicon of an owner. A term is a range that is read in
# order, which only the key can do: asked for by equality, the index of numbers costs nearly as little on paper, and
# beside many principals it was taken, with the whole lexicon filtered. The order is that of the index,
# so that sums of floats are the same whatever the plan.
_TERMS = """
SELECT t.principal_id, t.kind, t.term, t.term_no, t.df
FROM unnest(%(owners)s::uuid[]) AS o(owner), unnest(%(kinds)s::int[]) AS k(kind),
     unnest(%(terms)s::text[]) AS g(term),
     LATERAL (SELECT * FROM graph_term t
              WHERE t.principal_id = o.owner AND t.kind = k.kind
                AND t.term >= g.term COLLATE "C" AND t.term <= g.term COLLATE "C"
              ORDER BY t.term LIMIT 1 OFFSET 0) t
ORDER BY t.principal_id, t.kind, t.term
"""
_PREFIXES = """
SELECT t.principal_id, t.kind, g.prefix, t.term_no, t.df, t.term
FROM unnest(%(prefixes)s::text[], %(ends)s::text[]) AS g(prefix, above),
     unnest(%(owners)s::uuid[]) AS o(owner), unnest(%(kinds)s::int[]) AS k(kind),
     LATERAL (SELECT * FROM graph_term t
              WHERE t.principal_id = o.owner AND t.kind = k.kind
                AND t.term >= g.prefix COLLATE "C" AND t.term < g.above COLLATE "C"
              ORDER BY t.df DESC, t.term LIMIT 8 OFFSET 0) t
"""


class PlannedTerm(NamedTuple):
    """A term whose postings will be read, for one unit (a query group in one kind of corpus)."""

    owner: UUID
    term_no: int
    unit: int
    weight: float
    generates: bool


@dataclass(frozen=True, slots=True)
class Unit:
    """A query group in one kind of corpus: the statistics of its BM25."""

    group: int
    idf: float
    mean_length: float
    df: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What the lexical channel will read.

    Attributes:
        groups: groups of the query; a row that matches all of them ranks before one that does not.
        one_term: no unit has two terms in one owner's corpus, so that a posting is a whole match.
    """

    terms: tuple[PlannedTerm, ...]
    units: tuple[Unit, ...]
    groups: int
    one_term: bool


class _Found(NamedTuple):
    owner: UUID
    term_no: int
    df: int
    weight: float


def plan(
    cursor: Cursor[Any], groups: Sequence[Group], restriction: Restriction, statistics: Statistics
) -> Plan:
    """Look the groups up and decide which of their postings to read, in which order."""
    matches = _look_up(cursor, groups, restriction)
    units: list[tuple[Unit, list[_Found]]] = []
    for (group, kind), found in matches.items():
        nodes, mean_length = statistics.of_kind(CorpusKind(kind))
        df = min(nodes, sum(term.df for term in found))
        if df > 0 and mean_length > 0:
            idf = math.log(1 + (nodes - df + 0.5) / (df + 0.5))
            units.append((Unit(group, idf, mean_length, df), found))
    kept = _rarest_groups(units)
    chosen = sorted((one for one in units if one[0].group in kept), key=lambda one: (one[0].df, one[0].group))
    return Plan(
        terms=tuple(_planned(chosen)),
        units=tuple(unit for unit, _ in chosen),
        groups=len(groups),
        one_term=all(len({t.owner for t in found}) == len(found) for _, found in chosen),
    )


def _rarest_groups(units: list[tuple[Unit, list[_Found]]]) -> set[int]:
    """The groups of highest idf, as many as may be used."""
    best: dict[int, float] = {}
    for unit, _ in units:
        best[unit.group] = max(best.get(unit.group, 0.0), unit.idf)
    return set(sorted(best, key=lambda group: (-best[group], group))[:MAX_GROUPS])


def _planned(chosen: list[tuple[Unit, list[_Found]]]) -> list[PlannedTerm]:
    """Units generate candidates by ascending frequency until enough postings are named, but one always does."""
    planned: list[PlannedTerm] = []
    postings = 0
    for number, (_, found) in enumerate(chosen):
        postings += sum(term.df for term in found)
        generates = number == 0 or postings <= GENERATING_POSTINGS
        planned += [PlannedTerm(t.owner, t.term_no, number, t.weight, generates) for t in found]
    return planned


def _look_up(
    cursor: Cursor[Any], groups: Sequence[Group], restriction: Restriction
) -> dict[tuple[int, int], list[_Found]]:
    """The terms of each (group, kind) that some corpus has."""
    of_term: dict[str, list[int]] = defaultdict(list)
    for number, group in enumerate(groups):
        for term in group.forms:
            of_term[term].append(number)
    values = {"owners": uuids(restriction.owners), "kinds": array(int(kind) for kind in restriction.kinds)}
    matches: dict[tuple[int, int], list[_Found]] = defaultdict(list)
    if of_term:
        cursor.execute(_TERMS, values | {"terms": list(of_term)})
        for owner, kind, term, term_no, df in cursor.fetchall():
            for number in of_term[term]:
                matches[number, kind].append(_Found(owner, term_no, df, 1.0))
    known = {number for number, _ in matches}
    absent = {g.prefix: number for number, g in enumerate(groups) if g.prefix and number not in known}
    if absent:
        for number, kind, found in _expand(cursor, absent, values):
            matches[number, kind].append(found)
    return matches


def _expand(
    cursor: Cursor[Any], absent: dict[str, int], values: dict[str, Any]
) -> list[tuple[int, int, _Found]]:
    """The most frequent terms that begin with a word which no corpus knows."""
    prefixes = list(absent)
    cursor.execute(
        _PREFIXES, values | {"prefixes": prefixes, "ends": [p[:-1] + chr(ord(p[-1]) + 1) for p in prefixes]}
    )
    rows = cursor.fetchall()
    frequency: dict[tuple[str, str], int] = defaultdict(int)
    for _, _, prefix, _, df, term in rows:
        frequency[prefix, term] += df
    kept = {
        (prefix, term)
        for prefix in prefixes
        for term in sorted(
            (t for p, t in frequency if p == prefix), key=lambda t: (-frequency[prefix, t], t)
        )[:PREFIX_TERMS]
    }
    return [
        (absent[prefix], kind, _Found(owner, term_no, df, PREFIX_WEIGHT))
        for owner, kind, prefix, term_no, df, term in rows
        if (prefix, term) in kept
    ]
