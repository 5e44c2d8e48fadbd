"""Why an answer is empty, from the caller's own visible rows alone."""

import logging
from dataclasses import replace
from typing import Any

import psycopg
from django.db import transaction

from apps.retrieval.candidates import generate
from apps.retrieval.candidates.filters import Restriction
from apps.retrieval.schemas import Filters, RetrievalRequest

logger = logging.getLogger(__name__)

_PROBES = {
    "repository": "SELECT EXISTS (SELECT FROM graph_passage p WHERE p.principal_id = ANY(%(owners)s) "
    "AND p.repo = %(f_repository)s)",
    "path_prefix": "SELECT EXISTS (SELECT FROM graph_passage p WHERE p.principal_id = ANY(%(owners)s) "
    "AND starts_with(p.path, %(f_path_prefix)s))",
}
_ARCHIVED = (
    "SELECT count(*) FROM (SELECT FROM graph_node n WHERE n.principal_id = ANY(%(owners)s) "
    "AND (n.archived_at IS NOT NULL OR n.superseded_at IS NOT NULL) LIMIT 1000) bounded"
)


def filters_unmatched(cursor: Any, request: RetrievalRequest, allowed: Restriction) -> tuple[str, ...] | None:
    """Names of the filters whose value matches nothing that is indexed; None when that could not be found out."""
    given = [name for name in _PROBES if getattr(request.filters, name) is not None]
    values = {"owners": list(allowed.owners), **allowed.values}
    try:
        with transaction.atomic():
            unmatched = []
            for name in given:
                cursor.execute(_PROBES[name], values)
                if not cursor.fetchone()[0]:
                    unmatched.append(name)
    except psycopg.Error:
        logger.warning("filter_probe_failed")
        return None
    return tuple(unmatched)


def why_empty(
    cursor: Any,
    request: RetrievalRequest,
    allowed: Restriction,
    below_threshold: int,
    unmatched: tuple[str, ...] | None,
) -> dict[str, Any]:
    """Counts that explain a zero hit; `filters_unmatched` is left out where its probe failed."""
    cursor.execute(_ARCHIVED, {"owners": list(allowed.owners)})
    counts: dict[str, Any] = {
        "removed_by_filters": 0,
        "below_threshold": below_threshold,
        "archived": int(cursor.fetchone()[0]),
    }
    if allowed.filtered and not below_threshold:
        unfiltered = replace(request, filters=Filters(), scopes=None)
        counts["removed_by_filters"] = len(generate(unfiltered).pool)
    if unmatched is not None:
        counts["filters_unmatched"] = list(unmatched)
    return counts
