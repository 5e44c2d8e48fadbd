"""Why an answer is empty, from the caller's own visible rows alone."""

import logging
from dataclasses import replace
from typing import Any

import psycopg
from django.db import transaction
from psycopg import Cursor

from apps.core.db.sessions import current_principal
from apps.retrieval.candidates import generate
from apps.retrieval.candidates.filters import Restriction, restriction
from apps.retrieval.schemas import Filters, RetrievalRequest

logger = logging.getLogger(__name__)

_PROBES = {
    "repository": "SELECT EXISTS (SELECT FROM graph_passage p WHERE p.principal_id = ANY(%(owners)s) "
    "AND p.repo = %(f_repository)s)",
    "path_prefix": "SELECT EXISTS (SELECT FROM graph_passage p WHERE p.principal_id = ANY(%(owners)s) "
    "AND starts_with(p.path, %(f_path_prefix)s))",
}
MAX_COUNT = 1000
"""Rows up to which anything is counted here."""
_ARCHIVED = (
    "SELECT count(*) FROM (SELECT FROM graph_node n WHERE n.principal_id = ANY(%(owners)s) "
    "AND (n.archived_at IS NOT NULL OR n.superseded_at IS NOT NULL) LIMIT %(most)s) bounded"
)
_LISTABLE = (
    "SELECT count(*) FROM (SELECT FROM graph_node n WHERE n.principal_id = ANY(%(owners)s) "
    "AND {conditions} LIMIT %(most)s) bounded"
)


def filters_unmatched(
    cursor: Cursor[Any], request: RetrievalRequest, allowed: Restriction
) -> tuple[str, ...] | None:
    """Names of the filters whose value matches nothing that is indexed; None when that could not be found out."""
    given = [name for name in _PROBES if getattr(request.filters, name) is not None]
    values = {"owners": list(allowed.owners), **allowed.values}
    try:
        with transaction.atomic():
            unmatched = []
            for name in given:
                cursor.execute(_PROBES[name], values)
                if not _only(cursor):
                    unmatched.append(name)
    except psycopg.Error:
        logger.warning("filter_probe_failed")
        return None
    return tuple(unmatched)


def why_empty(
    cursor: Cursor[Any],
    request: RetrievalRequest,
    allowed: Restriction,
    below_threshold: int,
    unmatched: tuple[str, ...] | None,
) -> dict[str, Any]:
    """Counts that explain a zero hit; `filters_unmatched` is left out where its probe failed."""
    removed = 0
    if allowed.filtered and not below_threshold:
        removed = len(generate(_unfiltered(request)).pool)
    return _counts(cursor, allowed, removed, below_threshold, unmatched)


def why_nothing_new(
    cursor: Cursor[Any],
    request: RetrievalRequest,
    windowed: RetrievalRequest,
    allowed: Restriction,
    unmatched: tuple[str, ...] | None,
) -> dict[str, Any]:
    """Counts that explain a scan without rows: those that it would list but for what the caller asked of them.

    A window that the caller gave is a filter like any other; the usual one, which `windowed` has, is none.
    """
    chosen = request.filters.since is not None or request.filters.until is not None
    window = Filters() if chosen else Filters(since=windowed.filters.since, until=windowed.filters.until)
    anything = restriction(replace(_unfiltered(request), filters=window), current_principal())
    cursor.execute(
        _LISTABLE.format(conditions=anything.eligible()),
        {"owners": list(allowed.owners), "most": MAX_COUNT, **anything.values},
    )
    return _counts(cursor, allowed, int(_only(cursor)), 0, unmatched)


def _unfiltered(request: RetrievalRequest) -> RetrievalRequest:
    return replace(request, filters=Filters(), scopes=None, outside=())


def _counts(
    cursor: Cursor[Any], allowed: Restriction, removed: int, below: int, unmatched: tuple[str, ...] | None
) -> dict[str, Any]:
    cursor.execute(_ARCHIVED, {"owners": list(allowed.owners), "most": MAX_COUNT})
    counts: dict[str, Any] = {
        "removed_by_filters": removed,
        "below_threshold": below,
        "archived": int(_only(cursor)),
    }
    if unmatched is not None:
        counts["filters_unmatched"] = list(unmatched)
    return counts


def _only(cursor: Cursor[Any]) -> Any:
    """The one value of the one row."""
    ((value,),) = cursor.fetchall()
    return value
