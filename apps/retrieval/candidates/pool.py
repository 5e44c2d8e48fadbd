"""The pool: every candidate of any channel, with what scoring needs to know of it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

from psycopg import Cursor

from apps.core.db.wire import halfvec, uuids
from apps.graph.embedders import QueryEmbedding

COLUMNS = """n.id, n.principal_id, n.kind, n.subkind, n.epistemic, n.confidence, n.weight, n.useful_count,
       n.unhelpful_count, n.pinned, n.stale_at, n.accessed_at, n.updated_at, n.event_at, n.digest,
       CASE WHEN n.archived_at IS NOT NULL THEN 'archived' WHEN n.superseded_at IS NOT NULL THEN 'superseded' END,
       n.valid_from, n.valid_to,
       p.repo, p.type, p.identity::text, p.part, p.version, p.path, p.number, p.session, p."position\""""

_ATTRIBUTES = """
SELECT {columns}, {cosine} AS cosine
FROM graph_node n LEFT JOIN graph_passage p ON p.node_id = n.id
WHERE n.id = ANY(%(ids)s::uuid[])
"""
# A row that only the words found has its cosine, too; nobody looks up the vector of one that has been measured.
_COSINE = """CASE WHEN n.id = ANY(%(unmeasured)s::uuid[]) THEN (
  SELECT 1 - (v.vec::halfvec({dims}) <=> %(query)s::halfvec({dims})) FROM graph_vector v
  WHERE v.principal_id = n.principal_id AND v.embedder_id = {embedder} AND v.node_id = n.id) END"""


class Attributes(NamedTuple):
    """A node as scoring sees it. `cosine` is None where it was not asked for, or there is no vector."""

    id: UUID
    principal_id: UUID
    kind: str
    subkind: str
    epistemic: str
    confidence: float
    weight: float
    useful_count: int
    unhelpful_count: int
    pinned: bool
    stale_at: datetime | None
    accessed_at: datetime | None
    updated_at: datetime
    event_at: datetime | None
    digest: str
    withdrawn: Literal["archived", "superseded"] | None
    valid_from: datetime | None
    valid_to: datetime | None
    repo: str | None
    type: str | None
    identity: Any
    part: int | None
    version: str | None
    path: str | None
    number: int | None
    session: str | None
    position: int | None
    cosine: float | None


# Not frozen: a search makes hundreds, and freezing triples the price of making one.
@dataclass(slots=True)
class Candidate:
    """A candidate: what the channels said of it, and its attributes. Never changed once it is made."""

    node: Attributes
    bm25: float | None = None
    cosine: float | None = None
    lexical_rank: int | None = None
    semantic_rank: int | None = None
    hops: int | None = None
    graph_rank: int | None = None
    pinned_rank: int | None = None

    @property
    def searched(self) -> bool:
        """Whether the words or the meaning of the query found it."""
        return self.lexical_rank is not None or self.semantic_rank is not None

    @property
    def channels(self) -> int:
        """How many channels returned it."""
        return (
            (self.lexical_rank is not None)
            + (self.semantic_rank is not None)
            + (self.graph_rank is not None)
            + (self.pinned_rank is not None)
        )


def attributes(row: Sequence[Any]) -> Attributes:
    """From the columns of `COLUMNS` and the cosine."""
    identity = row[_IDENTITY]
    if identity is None:
        return Attributes._make(row)
    return Attributes._make((*row[:_IDENTITY], _decoded(identity), *row[_IDENTITY + 1 :]))


_IDENTITY = Attributes._fields.index("identity")


def _decoded(text: str) -> Any:
    """The value of a JSON text; plain strings, which most identities are, without a parser."""
    if text[0] == '"' and "\\" not in text:
        return text[1:-1]
    return json.loads(text)


def read_attributes(
    cursor: Cursor[Any],
    node_ids: Sequence[UUID],
    embedding: QueryEmbedding | None = None,
    unmeasured: Sequence[UUID] = (),
) -> list[Attributes]:
    """Attributes of those of the nodes that are visible, the unmeasured with their cosine to the query."""
    values: dict[str, Any] = {"ids": uuids(node_ids)}
    cosine = "NULL::float8"
    if unmeasured and embedding is not None and embedding.vector is not None:
        dims, embedder = int(embedding.vector.shape[0]), int(embedding.embedder_id or 0)
        cosine = _COSINE.format(dims=dims, embedder=embedder)
        values |= {"query": halfvec(embedding.vector), "unmeasured": uuids(unmeasured)}
    cursor.execute(_ATTRIBUTES.format(columns=COLUMNS, cosine=cosine), values, binary=True)
    return [attributes(row) for row in cursor.fetchall()]
