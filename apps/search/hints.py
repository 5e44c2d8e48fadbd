"""Hints out of scopes that a request did not name: apart from its rows, not recorded as sources, not in its context.

Who wants to use one fetches it by its id, which gives it a source to give feedback on.
"""

from collections.abc import Sequence
from typing import Any

from apps.retrieval.schemas import Row
from apps.search.rows import of_retrieved

TEXTS = ("cross_scope_hints", "content")
"""Where the answer holds their texts."""


def hints_shown(rows: Sequence[Row], *, explicit: bool) -> list[dict[str, Any]]:
    """As the API shows them."""
    return [
        of_retrieved(row).document(explain=False, explicit=explicit) | {"scope": row.scope} for row in rows
    ]


def hints_kept(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """What a trace keeps of them."""
    return [{"node_id": str(row.node_id), "scope": row.scope, "score": row.score} for row in rows]
