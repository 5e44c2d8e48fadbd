"""Measures retrieval: one principal's search beside others', its parts, and how it grows.

    python -m benchmarks.search [--nodes 10000] [--others 100] [--other-nodes 200] [--searches 300]

Times are p50 and p95 in milliseconds on this machine, embedding excluded. The ratio compares with the bare
candidate statements and one empty commit of the same run.
"""

import argparse
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import numpy as np

from benchmarks.database import analyze, own_database

VOCABULARY = 20_000
WORDS = 40
QUERY_WORDS = 6
STOP_RANKS = 50
"""The most frequent words, which a real analyser drops as stop words, do not occur in queries."""
LIMIT = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--others", type=int, default=100)
    parser.add_argument("--other-nodes", type=int, default=200)
    parser.add_argument("--searches", type=int, default=300)
    options = parser.parse_args()
    with own_database():
        run(options)


def run(options: argparse.Namespace) -> None:
    from benchmarks.worlds import principal, workspace

    texts = Texts(seed=7)
    space = workspace("search-benchmark")
    me = principal(space, f"token:me-{options.nodes}")
    others = [principal(space, f"token:other-{number}") for number in range(options.others)]
    with without_vector_index():
        for identity in others:
            fill(identity, options.other_nodes, texts)
        spent = fill(me, options.nodes, texts)
    analyze()
    print(f"import without vectors: {options.nodes / spent:,.0f} passages a second, {WORDS} words each")
    requests = [texts.request() for _ in range(options.searches)]
    print(
        f"{options.nodes} nodes, {options.others} other principals, {options.searches} searches, limit {LIMIT}"
    )
    warm(me, requests[:20])
    search = timed(lambda request: search_once(me, request), requests)
    bare = timed(lambda request: candidates_once(me, request), requests)
    empty = timed(lambda request: empty_session(me), requests)
    show("retrieval in its session", search)
    show("candidate statements in theirs", bare)
    show("empty session", empty)
    print(
        f"  retrieval ÷ (candidates + empty session): {median(search) / (median(bare) + median(empty)):.2f}"
    )
    parts(me, requests)


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
        for _, definition in found:
            owner.execute(definition)


def search_once(identity: Any, request: Any) -> None:
    from apps.core.db.sessions import principal_session
    from apps.retrieval.retrieve import retrieve

    with principal_session(identity):
        assert not retrieve(request).partial


def candidates_once(identity: Any, request: Any) -> None:
    from apps.core.db.sessions import principal_session
    from apps.retrieval.candidates import generate

    with principal_session(identity):
        generate(request)


def empty_session(identity: Any) -> None:
    from apps.core.db.sessions import principal_session

    with principal_session(identity):
        pass


def warm(identity: Any, requests: list[Any]) -> None:
    for request in requests:
        search_once(identity, request)


def timed(call: Callable[[Any], None], requests: list[Any]) -> list[float]:
    """Milliseconds of each call."""
    times = []
    for request in requests:
        start = time.perf_counter()
        call(request)
        times.append((time.perf_counter() - start) * 1000)
    return times


def parts(identity: Any, requests: list[Any]) -> None:
    """What the database itself says of the channels."""
    from apps.core.db.sessions import principal_session
    from apps.retrieval.candidates import generate

    times: dict[str, list[float]] = {"lexical": [], "semantic": []}
    for request in requests[:100]:
        with principal_session(identity):
            for report in generate(request).channels:
                times[report.name].append(report.milliseconds)
    for name, spent in times.items():
        show(f"{name} channel, in the database", spent)


def median(times: list[float]) -> float:
    return statistics.median(times)


def show(label: str, times: list[float]) -> None:
    ordered = sorted(times)
    print(f"  {label:<36} p50 {median(times):7.2f} ms   p95 {ordered[int(len(ordered) * 0.95)]:7.2f} ms")


if __name__ == "__main__":
    main()
