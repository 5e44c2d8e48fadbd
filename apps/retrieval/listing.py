"""Answers without a query: `scan` lists what is new, type by type; `fetch` gives nodes by their ids."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg import Cursor

from apps.core.db.cursors import session_cursor
from apps.core.db.sessions import current_principal
from apps.graph.services.items import TYPES
from apps.retrieval.candidates import Attributes
from apps.retrieval.candidates.filters import Restriction, restriction
from apps.retrieval.candidates.pool import read_attributes
from apps.retrieval.candidates.run import Channel, answer_all
from apps.retrieval.emptiness import filters_unmatched, why_nothing_new
from apps.retrieval.folding import fold_key
from apps.retrieval.hydrate import Display, hydrate
from apps.retrieval.schemas import RetrievalRequest

WINDOW = timedelta(days=7)
"""Before `until` (or now), where a scan names no `since`."""
MAX_SURFACE = 100

PASSAGE_SURFACES = TYPES
MEMORY_SURFACE = "memory_node"


@dataclass(frozen=True, slots=True)
class Surface:
    """One source type of a scan. `truncated`: more lay in the window than its cap; `error` is a stable code."""

    name: str
    count: int
    truncated: bool
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ListedRow:
    """A live node with its texts, and the members of the entity that it stands for."""

    node: Attributes
    display: Display
    others: tuple[Attributes, ...] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows in their order; `not_found` are ids that a fetch asked for in vain, foreign ones among them."""

    rows: tuple[ListedRow, ...]
    surfaces: tuple[Surface, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    not_found: tuple[UUID, ...] = ()
    filters_unmatched: tuple[str, ...] | None = None
    why_empty: dict[str, Any] | None = None

    @property
    def partial(self) -> bool:
        """Whether a surface failed, so that the listing may lack rows."""
        return any(surface.error for surface in self.surfaces)


_SURFACE = """
SELECT n.id, coalesce(n.event_at, n.updated_at) AS at, 0::float8
FROM graph_node n{passage}
WHERE n.principal_id = ANY(%(owners)s) AND n.archived_at IS NULL AND n.superseded_at IS NULL
  AND {conditions}
ORDER BY at DESC, n.id DESC LIMIT %(most)s
"""
_JOIN = " JOIN graph_passage p ON p.node_id = n.id"


def scan(request: RetrievalRequest) -> Listing:
    """What is new in the window, newest first, one row an entity; in the session of a principal.

    Every surface is asked by itself, so that one that fails leaves the others' rows in place.
    """
    until = request.filters.until or request.reference_time
    since = request.filters.since or until - WINDOW
    windowed = replace(request, filters=replace(request.filters, since=since, until=until))
    allowed = restriction(windowed, current_principal())
    cap = min(request.limit * 5, MAX_SURFACE)
    names = [name for name in (*PASSAGE_SURFACES, MEMORY_SURFACE) if _asked(name, request, allowed)]
    answers = answer_all(
        [Channel((_surface_sql(name, allowed), _values(name, allowed, cap))) for name in names]
    )
    surfaces = tuple(
        Surface(name, min(len(answer.rows), cap), len(answer.rows) > cap, answer.error)
        for name, answer in zip(names, answers, strict=True)
    )
    found = sorted(
        {(row[1], row[0]) for answer in answers for row in answer.rows[:cap]},
        key=lambda pair: (-pair[0].timestamp(), pair[1].int),
    )
    cursor = session_cursor()
    rows = _folded(cursor, [node_id for _, node_id in found], request.limit)
    listing = Listing(rows, surfaces, since, until)
    if rows or listing.partial:
        return listing
    unmatched = filters_unmatched(cursor, windowed, allowed)
    reasons = why_nothing_new(cursor, request, windowed, allowed, unmatched)
    return replace(listing, filters_unmatched=unmatched, why_empty=reasons)


def _asked(name: str, request: RetrievalRequest, allowed: Restriction) -> bool:
    filters = request.filters
    if name == MEMORY_SURFACE:
        return not allowed.passage and (not filters.kinds or "episodic" in filters.kinds)
    if filters.kinds and "passage" not in filters.kinds:
        return False
    return not filters.types or name in filters.types


def _surface_sql(name: str, allowed: Restriction) -> str:
    memory = name == MEMORY_SURFACE
    mine = "n.kind = 'episodic'" if memory else "p.type = %(surface)s"
    conditions = " AND ".join((mine, *allowed.node, *allowed.passage))
    return _SURFACE.format(passage="" if memory else _JOIN, conditions=conditions)


def _values(name: str, allowed: Restriction, cap: int) -> dict[str, Any]:
    return {**allowed.values, "owners": list(allowed.owners), "surface": name, "most": cap + 1}


def _folded(cursor: Cursor[Any], node_ids: Sequence[UUID], limit: int) -> tuple[ListedRow, ...]:
    """One row an entity, the newest of it; `limit` counts entities."""
    known = _live(cursor, node_ids) if node_ids else {}
    groups: dict[tuple[str, ...], list[Attributes]] = {}
    for node_id in node_ids:
        if node_id in known:
            groups.setdefault(fold_key(known[node_id]), []).append(known[node_id])
    chosen = list(groups.values())[:limit]
    return tuple(_listed(cursor, [(group[0], tuple(group[1:])) for group in chosen]))


def _live(cursor: Cursor[Any], node_ids: Sequence[UUID]) -> dict[UUID, Attributes]:
    return {node.id: node for node in read_attributes(cursor, node_ids) if node.withdrawn is None}


def _listed(
    cursor: Cursor[Any], entities: Sequence[tuple[Attributes, tuple[Attributes, ...]]]
) -> Iterable[ListedRow]:
    shown = hydrate(cursor, [node.id for node, _ in entities])
    for node, others in entities:
        if node.id in shown:
            yield ListedRow(node, shown[node.id], others)


def fetch(node_ids: Sequence[UUID]) -> Listing:
    """The nodes in the order asked for, duplicates dropped, and which of them are not there for the caller."""
    wanted = list(dict.fromkeys(node_ids))
    cursor = session_cursor()
    known = _live(cursor, wanted)
    rows = tuple(_listed(cursor, [(known[node_id], ()) for node_id in wanted if node_id in known]))
    there = {row.node.id for row in rows}
    return Listing(rows, not_found=tuple(node_id for node_id in wanted if node_id not in there))
