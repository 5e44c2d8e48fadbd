"""Puts passages and vectors into a test's memory, and asks it."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import numpy as np
from django.db import connection

from apps.core import clock
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session
from apps.graph.embedders import QueryEmbedding
from apps.graph.embedders.active import active
from apps.graph.services import PassageItem, write_passages
from apps.graph.services.vectors import Missing, _Made, _store, find_missing
from apps.retrieval.policy import PolicyInForce
from apps.retrieval.retrieve import retrieve
from apps.retrieval.schemas import Retrieval, RetrievalRequest

NO_VECTOR = QueryEmbedding("empty")


def store(principal: PrincipalIdentity, *items: PassageItem | str) -> list[UUID]:
    """Store passages (a text is a document named by its place); their node ids."""
    passages = [
        item if isinstance(item, PassageItem) else PassageItem(identity=str(number), text=item)
        for number, item in enumerate(items)
    ]
    with principal_session(principal):
        results = write_passages(items=passages)
    assert all(result.node_id for result in results), results
    return [result.node_id for result in results if result.node_id]


def give_vectors(principal: PrincipalIdentity, vectors: dict[UUID, Sequence[float]]) -> None:
    """Store these vectors for nodes that have none."""
    space = active()
    assert space is not None
    with principal_session(principal):
        missing = {m.id: m for m in find_missing(principal.principal_id, space.id, 100_000)}
        made = [_made(missing[node_id], vector) for node_id, vector in vectors.items()]
        _store(principal.principal_id, space, made)


def _made(node: Missing, vector: Sequence[float]) -> _Made:
    return _Made(node, "ready", unit(vector))


def unit(values: Sequence[float]) -> Any:
    """A unit vector of the active space that begins with these values."""
    space = active()
    assert space is not None
    vector = np.zeros(space.dims, np.float32)
    vector[: len(values)] = values
    return vector / np.linalg.norm(vector)


def question(values: Sequence[float]) -> QueryEmbedding:
    """The embedding of a query, as if its embedder had said this."""
    space = active()
    assert space is not None
    return QueryEmbedding("ready", space.id, space.model_id, unit(values))


def ask(
    principal: PrincipalIdentity,
    query: str,
    *,
    embedding: QueryEmbedding = NO_VECTOR,
    multipliers: dict[str, float] | None = None,
    policy: PolicyInForce | None = None,
    **fields: Any,
) -> Retrieval:
    request = RetrievalRequest(query=query, embedding=embedding, reference_time=clock.now(), **fields)
    with principal_session(principal):
        return retrieve(request, multipliers=multipliers, policy=policy)


def corpus(principal: PrincipalIdentity, kind: int = 3) -> dict[str, Any]:
    """The statistics of a corpus as they are stored."""
    with principal_session(principal), connection.cursor() as cursor:
        cursor.execute(
            "SELECT nodes, total_len, vectors, revision, content FROM graph_corpus "
            "WHERE principal_id = %s AND kind = %s",
            [principal.principal_id, kind],
        )
        row = cursor.fetchone() or (0, 0, 0, 0, 0)
    return dict(zip(("nodes", "total_len", "vectors", "revision", "content"), row, strict=True))


def frequencies(principal: PrincipalIdentity) -> dict[str, int]:
    """Document frequency of every term in the owner's lexicon."""
    with principal_session(principal), connection.cursor() as cursor:
        cursor.execute("SELECT term, df FROM graph_term WHERE principal_id = %s", [principal.principal_id])
        return dict(cursor.fetchall())


def recounted(principal: PrincipalIdentity) -> tuple[dict[str, int], int, int]:
    """(frequencies, nodes, total length) counted anew from postings and rows."""
    owner = principal.principal_id
    with principal_session(principal), connection.cursor() as cursor:
        cursor.execute(
            "SELECT t.term, count(*) FROM graph_posting p "
            "JOIN graph_term t ON t.principal_id = p.principal_id AND t.term_no = p.term_no "
            "WHERE p.principal_id = %s GROUP BY t.term",
            [owner],
        )
        counted = dict(cursor.fetchall())
        cursor.execute("SELECT count(*) FROM graph_node WHERE principal_id = %s", [owner])
        nodes = cursor.fetchone()[0]
        cursor.execute(
            "SELECT coalesce(sum(len), 0) FROM "
            "(SELECT DISTINCT node_no, len FROM graph_posting WHERE principal_id = %s) each_node",
            [owner],
        )
        return counted, nodes, int(cursor.fetchone()[0])
