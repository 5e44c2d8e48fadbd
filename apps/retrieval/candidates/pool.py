"""The pool: every candidate of any channel, with what scoring needs to know of it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from pgvector import HalfVector

from apps.graph.embedders import QueryEmbedding

COLUMNS = """n.id, n.principal_id, n.kind, n.subkind, n.epistemic, n.confidence, n.weight, n.useful_count,
       n.unhelpful_count, n.pinned, n.stale_at, n.accessed_at, n.updated_at, n.event_at, n.digest,
       p.repo, p.type, p.identity::text, p.part, p.version, p.path, p.number, p.session, p."position\""""

# Vectors are looked up by node, so that a row that only the words found has its cosine, too.
_ATTRIBUTES = """
SELECT {columns}, {cosine} AS cosine
FROM graph_node n LEFT JOIN graph_passage p ON p.node_id = n.id{vectors}
WHERE n.id = ANY(%(ids)s) AND n.archived_at IS NULL AND n.superseded_at IS NULL
"""
_COSINE = "1 - (v.vec::halfvec({dims}) <=> %(query)s::halfvec({dims}))"
_VECTORS = """ LEFT JOIN graph_vector v
  ON v.principal_id = n.principal_id AND v.embedder_id = {embedder} AND v.node_id = n.id"""


class Attributes(NamedTuple):
    """A live node as scoring sees it. `cosine` is None where it has no vector or the query has none."""

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


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate: what the channels said of it, and its attributes."""

    node: Attributes
    bm25: float | None = None
    cosine: float | None = None
    lexical_rank: int | None = None
    semantic_rank: int | None = None

    @property
    def channels(self) -> int:
        """How many channels returned it."""
        return (self.lexical_rank is not None) + (self.semantic_rank is not None)


def attributes(row: Sequence[Any]) -> Attributes:
    """From the columns of `COLUMNS` and the cosine."""
    found = Attributes._make(row)
    return found if found.identity is None else found._replace(identity=json.loads(found.identity))


def read_attributes(
    cursor: Any, node_ids: Sequence[UUID], embedding: QueryEmbedding | None
) -> dict[UUID, Attributes]:
    """Attributes of those of the nodes that are live and visible, with the cosine to the query."""
    values: dict[str, Any] = {"ids": list(node_ids)}
    cosine, vectors = "NULL::float8", ""
    if embedding is not None and embedding.vector is not None:
        cosine = _COSINE.format(dims=int(embedding.vector.shape[0]))
        vectors = _VECTORS.format(embedder=int(embedding.embedder_id or 0))
        values["query"] = HalfVector(embedding.vector).to_text()
    cursor.execute(_ATTRIBUTES.format(columns=COLUMNS, cosine=cosine, vectors=vectors), values, binary=True)
    return {row[0]: attributes(row) for row in cursor.fetchall()}
