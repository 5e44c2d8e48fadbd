"""The embedding of a query: outside of any transaction, and never an exception."""

import time
from dataclasses import dataclass
from typing import Literal

from .active import active
from .base import MAX_CHARACTERS, EmbedderFailed, Vectors, has_substance


@dataclass(frozen=True, slots=True, eq=False)
class QueryEmbedding:
    """A query's unit vector in the space of one embedder.

    state: `ready`; `empty` for a query without letter or digit, which has no vector and no failure; `failed`
    with the stable code `error`.
    """

    state: Literal["ready", "empty", "failed"]
    embedder_id: int | None = None
    model_id: str | None = None
    vector: Vectors | None = None
    error: str | None = None
    milliseconds: float = 0.0


def embed_query(text: str) -> QueryEmbedding:
    """Embed with the active embedder. Call it before a session begins: it may use the network."""
    start = time.perf_counter()
    chosen = active()
    if chosen is None:
        return QueryEmbedding("failed", error="embedder_not_active")
    if not has_substance(text):
        return QueryEmbedding("empty", embedder_id=chosen.id, model_id=chosen.model_id)
    try:
        vector = chosen.embedder().embed_query(text[:MAX_CHARACTERS])
    except EmbedderFailed as failure:
        return QueryEmbedding("failed", chosen.id, chosen.model_id, error=failure.code)
    spent = (time.perf_counter() - start) * 1000
    return QueryEmbedding("ready", chosen.id, chosen.model_id, vector, milliseconds=spent)
