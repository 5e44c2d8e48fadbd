"""Measures a search: through the service, over HTTP, beside others' data, and by many clients at once.

    python -m benchmarks.search [--nodes 10000] [--others 100] [--more-others 900] [--other-nodes 20]
                                [--searches 200] [--clients 16]

Times are p50 and p95 in milliseconds on this machine; processor time (Python and the connection's process of
PostgreSQL) stands beside them, since other work on the machine lengthens times more than it lengthens that. The
query's embedding is left out of all but HTTP, and shown apart. Ratios compare numbers of one run.
"""

import argparse
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
OLD_TRACES = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--others", type=int, default=100)
    parser.add_argument("--more-others", type=int, default=900)
    parser.add_argument("--other-nodes", type=int, default=20)
    parser.add_argument("--searches", type=int, default=200)
    parser.add_argument("--clients", type=int, default=16)
    options = parser.parse_args()
    with own_database():
        run(options)


def run(options: argparse.Namespace) -> None:
    from benchmarks.worlds import fill_traces, principal, workspace

    texts = Texts(seed=7)
    space = workspace("search-benchmark")
    me = principal(space, "token:me")
    fill_traces(me, OLD_TRACES)
    with without_vector_index():
        neighbours(space, range(options.others), options.other_nodes, texts)
        spent = fill(me, options.nodes, texts)
    analyze()
    print(f"import without vectors: {options.nodes / spent:,.0f} passages a second, {WORDS} words each")
    requests = [texts.request() for _ in range(options.searches)]
    print(
        f"{options.nodes} nodes, {options.others} other principals, {len(requests)} searches, limit {LIMIT}"
    )
    alone = service(me, requests)
    parts(me, requests)
    over_http(me, requests, options.clients)
    if options.more_others:
        every = options.others + options.more_others
        neighbours(space, range(options.others, every), options.other_nodes, texts)
        analyze()
        beside = measured(front_door(me, requests), requests)
        beside.show(f"search, {every} other principals")
        print(f"  p50 {every} ÷ {options.others} others: {beside.p50 / alone.p50:.2f} (must: ≤ 1.10)")
        print(f"  processor time {every} ÷ {options.others} others: {beside.processor / alone.processor:.2f}")


def neighbours(space: Any, numbers: range, nodes: int, texts: "Texts") -> None:
    from benchmarks.worlds import principal

    for number in numbers:
        fill(principal(space, f"token:other-{number}"), nodes, texts)


def service(me: Any, requests: list[Any]) -> "Measured":
    """The rows of the table that need no server."""
    search = front_door(me, requests)
    for request in requests[:20]:
        search(request)
    whole = measured(search, requests)
    retrieval = measured(lambda request: search_once(me, request), requests)
    candidates = measured(lambda request: candidates_once(me, request), requests)
    bare = measured(bare_candidates(me, requests), requests)
    empty = measured(lambda request: empty_session(me), requests)
    whole.show("search with its trace committed")
    retrieval.show("retrieval in its session")
    candidates.show("candidates in their session")
    bare.show("bare candidate SQL")
    empty.show("empty session")
    allowed = 2 * (bare.p50 + empty.p50)
    print(f"  search p50 {whole.p50:.2f} ms (must: ≤ 20)")
    print(f"  search ÷ (bare candidate SQL + empty session): {2 * whole.p50 / allowed:.2f} (must: ≤ 2)")
    spent = bare.processor + empty.processor
    print(f"  the same of processor time: {whole.processor / spent:.2f}")
    return whole


def front_door(me: Any, requests: list[Any]) -> Callable[[Any], None]:
    """A search through the service, given the embedding of its query."""
    from apps.search import found
    from apps.search.schemas import SearchRequest
    from apps.search.services import search

    given = {request.query: request.embedding for request in requests}

    def call(request: Any) -> None:
        own = vars(found)["embed_query"]
        vars(found)["embed_query"] = given.__getitem__
        try:
            fitted = search(caller=me, request=SearchRequest(query=request.query, limit=LIMIT))
        finally:
            vars(found)["embed_query"] = own
        assert fitted.document["trace_id"]

    return call


def bare_candidates(me: Any, requests: list[Any]) -> Callable[[Any], None]:
    """The statements by which a request finds its candidates and their attributes, and nothing around them."""
    import psycopg

    from apps.core.db.sessions import principal_session
    from apps.retrieval.candidates import generate, run

    sent: dict[str, list[tuple[Any, Any]]] = {}
    execute = psycopg.Cursor.execute
    for request in requests:
        kept = sent[request.query] = []

        def keep(cursor: Any, sql: Any, values: Any = None, kept: Any = kept, **more: Any) -> Any:
            if values:
                kept.append((sql, values))
            return execute(cursor, sql, values, **more)

        psycopg.Cursor.execute = keep  # type: ignore[method-assign, assignment]
        try:
            with principal_session(me):
                generate(request)
        finally:
            psycopg.Cursor.execute = execute  # type: ignore[method-assign]

    def call(request: Any) -> None:
        with principal_session(me):
            cursor = run.session_cursor()
            for sql, values in sent[request.query]:
                cursor.execute(sql, values, binary=True).fetchall()

    return call


def over_http(me: Any, requests: list[Any], clients: int) -> None:
    """One client beside the service with the same embedder, then many clients."""
    from apps.graph.embedders import embed_query
    from apps.search.schemas import SearchRequest
    from apps.search.services import search
    from benchmarks.web import Client, concurrently, token_of, web_server

    token = token_of(me, "search")
    queries = [request.query for request in requests]
    embedding = measured(lambda request: embed_query(request.query), requests)
    embedding.show("query embedding, default model")
    with web_server() as port:
        concurrently(port, token, queries[:40], clients=4, limit=LIMIT)
        client = Client(port, token)
        times: dict[str, list[float]] = {"service": [], "http": []}
        for query in queries:
            # In turn, so that both meet the same machine.
            start = time.perf_counter()
            search(caller=me, request=SearchRequest(query=query, limit=LIMIT))
            middle = time.perf_counter()
            assert client.search(query, LIMIT)
            times["service"].append((middle - start) * 1000)
            times["http"].append((time.perf_counter() - middle) * 1000)
        show("service, embedding included", times["service"])
        show("over HTTP, one client", times["http"])
        print(f"  HTTP adds {median(times['http']) - median(times['service']):.2f} ms to p50 (must: ≤ 6)")
        load = concurrently(port, token, queries * 4, clients=clients, limit=LIMIT)
    show(f"{clients} clients", load.times)
    print(
        f"  {len(load.times) / load.seconds:.1f} searches a second (must: ≥ 80), "
        f"p95 {percentile(load.times, 0.95):.0f} ms (must: ≤ 400), {load.errors} errors (must: 0)"
    )


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


@dataclass(frozen=True, slots=True)
class Measured:
    """Milliseconds of each call, and the mean processor time of one in Python and in PostgreSQL."""

    times: list[float]
    python: float
    postgres: float

    @property
    def p50(self) -> float:
        return median(self.times)

    @property
    def processor(self) -> float:
        return self.python + self.postgres

    def show(self, label: str) -> None:
        print(
            f"  {label:<36} p50 {self.p50:7.2f} ms   p95 {percentile(self.times, 0.95):7.2f} ms   "
            f"processor {self.python:6.2f} + {self.postgres:6.2f} ms"
        )


def measured(call: Callable[[Any], Any], requests: list[Any]) -> Measured:
    from django.db import connection

    from benchmarks.web import processor_ms

    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    python, postgres = time.thread_time(), processor_ms(pid)
    times = timed(call, requests)
    count = len(requests)
    return Measured(
        times, (time.thread_time() - python) * 1000 / count, (processor_ms(pid) - postgres) / count
    )


def timed(call: Callable[[Any], Any], requests: list[Any]) -> list[float]:
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


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[int(len(times) * share)]


def show(label: str, times: list[float]) -> None:
    print(f"  {label:<36} p50 {median(times):7.2f} ms   p95 {percentile(times, 0.95):7.2f} ms")


if __name__ == "__main__":
    main()
