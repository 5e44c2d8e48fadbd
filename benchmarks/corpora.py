"""Texts, vectors and principals of benchmarks: reproducible, with the frequencies of a language."""

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import numpy as np

VOCABULARY = 20_000
WORDS = 40
QUERY_WORDS = 6
STOP_RANKS = 50
"""The most frequent words, which a real analyser drops as stop words, do not occur in queries."""
LIMIT = 20
BUILD_MEMORY = "1GB"
"""In which a vector index is built: one that does not fit into it takes many times as long."""


class Texts:
    """Texts of words with the frequencies of a language (Zipf), and unit vectors; reproducible."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._vectors = np.random.default_rng(seed)
        letters = "abcdefghijklmnopqrstuvwxyz"
        words: dict[str, None] = {}
        while len(words) < VOCABULARY:
            words["".join(self._random.choices(letters, k=self._random.randint(3, 9)))] = None
        self._words = list(words)
        self._weights = [1 / rank for rank in range(1, VOCABULARY + 1)]

    def text(self, words: int = WORDS) -> str:
        return " ".join(self._random.choices(self._words, self._weights, k=words))

    def question(self) -> str:
        return " ".join(
            self._random.choices(self._words[STOP_RANKS:], self._weights[STOP_RANKS:], k=QUERY_WORDS)
        )

    def vectors(self, count: int) -> Any:
        rows = self._vectors.normal(size=(count, 384)).astype(np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def request(self) -> Any:
        from apps.graph.embedders import QueryEmbedding
        from apps.graph.embedders.active import active
        from apps.retrieval.schemas import RetrievalRequest

        space = active()
        assert space is not None
        vector = QueryEmbedding("ready", space.id, space.model_id, self.vectors(1)[0])
        return RetrievalRequest(
            query=self.question(), embedding=vector, reference_time=datetime.now(UTC), limit=LIMIT
        )


def fill(identity: Any, nodes: int, texts: Texts) -> float:
    """Store passages with vectors; the seconds that storing without vectors took."""
    from apps.core.db.sessions import principal_session
    from apps.graph.embedders.active import active
    from apps.graph.services import PassageItem, embed_missing, write_passages

    space = active()
    assert space is not None
    space.embedder().embed_passages = lambda given: texts.vectors(len(given))  # type: ignore[method-assign, assignment]
    spent = 0.0
    for first in range(0, nodes, 1000):
        items = [
            PassageItem(identity=str(n), text=texts.text()) for n in range(first, min(nodes, first + 1000))
        ]
        start = time.perf_counter()
        with principal_session(identity):
            write_passages(items=items)
        spent += time.perf_counter() - start
    while embed_missing(principal=identity, batch=1000).more:
        pass
    return spent


@contextmanager
def without_vector_index() -> Iterator[None]:
    """Load faster: the vector indexes are dropped and built again at the end."""
    import psycopg

    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as owner:
        found = owner.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE indexname LIKE 'graph_vector_hnsw%'"
        ).fetchall()
        for name, _ in found:
            owner.execute(f"DROP INDEX {name}")
        yield
        owner.execute(f"SET maintenance_work_mem = '{BUILD_MEMORY}'")
        for _, definition in found:
            owner.execute(definition)


def neighbours(space: Any, numbers: range, nodes: int, texts: Texts) -> None:
    """Other principals of a workspace, with so many passages each."""
    from benchmarks.worlds import principal

    for number in numbers:
        fill(principal(space, f"token:other-{number}"), nodes, texts)
