"""The texts and display fields of the rows of an answer, in one query."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import Cursor

from apps.core.db.wire import uuids
from apps.graph.models.nodes import INSTRUCTS
from apps.retrieval.candidates.standing import LEAST_CONFIDENCE

_DISPLAY = f"""
SELECT n.id, n.label, n.body, n.scope, p.slug, p.url, p.state, coalesce(p.labels, '{{}}')::text[], p.milestone,
       p.assignee, n.pinned,
       {INSTRUCTS} AND (n.pinned OR n.asserted_by = 2 AND n.confidence >= {LEAST_CONFIDENCE})
FROM graph_node n LEFT JOIN graph_passage p ON p.node_id = n.id WHERE n.id = ANY(%(ids)s::uuid[])
"""


class Display(NamedTuple):
    """What an answer shows of a node beside what scoring knew of it.

    standing: an instruction of its owner that holds beyond one conversation, by the owner's own word or pinned.
    """

    id: UUID
    title: str
    content: str
    scope: str
    slug: str | None
    url: str | None
    state: str | None
    labels: list[str]
    milestone: str | None
    assignee: str | None
    pinned: bool
    standing: bool


def hydrate(cursor: Cursor[Any], node_ids: Sequence[UUID]) -> dict[UUID, Display]:
    """The display fields of these nodes, as far as the session may see them."""
    if not node_ids:
        return {}
    cursor.execute(_DISPLAY, {"ids": uuids(node_ids)})
    return {row[0]: Display(*row) for row in cursor.fetchall()}
