"""Measures a search and prints every bound of the retrieval specification, with whether it held.

    python -m benchmarks.search [--without PART …] [--nodes 10000] [--others 100] [--more-others 900]
                                [--other-nodes 20] [--large 100000] [--searches 200] [--clients 16]

Parts that may be left out: http, clients, receipts, others, large. Times are p50 and p95 in milliseconds on this
machine; processor time (Python and the connection's process of PostgreSQL) stands beside them, since other work on the
machine lengthens times more than it lengthens that. The query's embedding is left out, unless a row says otherwise, and
shown apart. Ratios compare numbers of one run.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bounds import Table, report
from benchmarks.corpora import LIMIT, WORDS, Texts, fill, neighbours, without_vector_index
from benchmarks.database import analyze, own_database
from benchmarks.measuring import Measured, in_turn, measured, median, percentile, show

PARTS = ("http", "clients", "receipts", "others", "large")
OLD_TRACES = 10_000
WARMING = 20
CANDIDATES, TOKEN_BUDGET = 15, 2_000
"""Of the receipt that is measured, context included."""
RECEIPTS = 3_000
MAX_RECEIPT = 6 * 1024
YARDSTICK = "yardstick"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--without", nargs="+", choices=PARTS, default=(), metavar="PART")
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--others", type=int, default=100)
    parser.add_argument("--more-others", type=int, default=900)
    parser.add_argument("--other-nodes", type=int, default=20)
    parser.add_argument("--large", type=int, default=100_000)
    parser.add_argument("--searches", type=int, default=200)
    parser.add_argument("--clients", type=int, default=16)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # as the web process has it
    with own_database():
        run(options)


def run(options: argparse.Namespace) -> None:
    from benchmarks.worlds import fill_traces, principal, workspace

    texts, table = Texts(seed=7), Table()
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
        f"{options.nodes:,} nodes, {options.others} other principals, {len(requests)} searches, limit {LIMIT}"
    )
    alone, stick = service(me, requests, table)
    parts(me, requests)
    if "http" not in options.without:
        over_http(me, requests, table)
    if "clients" not in options.without:
        many_clients(me, requests, options.clients, table)
    if "receipts" not in options.without:
        receipts(me, requests, table)
    if "others" not in options.without:
        every = options.others + options.more_others
        with without_vector_index():
            neighbours(space, range(options.others, every), options.other_nodes, texts)
        analyze()
        beside_more(me, requests, alone.p50 / stick.p50, f"{options.others:,} → {every:,}", table)
    if "large" not in options.without:
        large = principal(space, "token:large")
        with without_vector_index():
            fill(large, options.large, texts)
        analyze()
        of_many_nodes(large, requests, options.large, table)
    report(table)


def service(me: Any, requests: list[Any], table: Table) -> tuple[Measured, Measured]:
    """The rows of the table that need no server, and the search and the yardstick that later rows are measured by.

    Later searches meet words that were met here.
    """
    search = warmed(me, requests)
    new = measured(search, requests)
    new.show("search, words not met before")
    found = in_turn(
        {
            "search with its trace committed": search,
            "retrieval in its session": lambda request: search_once(me, request),
            "candidates in their session": lambda request: candidates_once(me, request),
            "bare candidate SQL": bare_candidates(me, requests),
            "empty session": lambda request: empty_session(me),
            YARDSTICK: yardstick,
        },
        requests,
    )
    for name, each in found.items():
        each.show(name)
    whole, _, _, bare, empty, stick = found.values()
    ratio = whole.p50 / (bare.p50 + empty.p50)
    spent = whole.processor / (bare.processor + empty.processor)
    print(f"  search ÷ (bare candidate SQL + empty session), of processor time: {spent:.2f}")
    named = f"search, trace and receipt committed, {len(requests)} queries"
    table.add(named, "p50 ≤ 20 ms", f"{whole.p50:.1f} ms", whole.p50 <= 20)
    table.add("the same ÷ (bare candidate SQL + empty commit), in turn", "≤ 2", f"{ratio:.2f}", ratio <= 2)
    table.add("the same, of queries with words that the process has not met", "–", f"{new.p50:.1f} ms", None)
    return whole, stick


def warmed(me: Any, requests: list[Any]) -> Callable[[Any], None]:
    """The front door, after the statements of this connection have been prepared."""
    search = front_door(me, requests)
    for request in requests[:WARMING]:
        search(request)
    return search


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

    from apps.core.db.cursors import session_cursor
    from apps.core.db.sessions import principal_session
    from apps.retrieval.candidates import generate

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
                kept.clear()  # of what began the session
                generate(request)
        finally:
            psycopg.Cursor.execute = execute  # type: ignore[method-assign]

    def call(request: Any) -> None:
        with principal_session(me):
            cursor = session_cursor()
            for sql, values in sent[request.query]:
                cursor.execute(sql, values, binary=True).fetchall()

    return call


def over_http(me: Any, requests: list[Any], table: Table) -> None:
    """One client beside the service, both with the same embedder."""
    from apps.graph.embedders import embed_query
    from apps.search.schemas import SearchRequest
    from apps.search.services import search
    from benchmarks.web import Client, concurrently, token_of, web_server

    token = token_of(me, "search")
    queries = [request.query for request in requests]
    embedding = measured(lambda request: embed_query(request.query), requests)
    embedding.show("query embedding, default model")
    table.add(
        "query embedding, default model",
        "apart",
        f"{embedding.p50:.1f} ms, {embedding.python:.1f} ms of processor",
        None,
    )
    with web_server() as port:
        concurrently(port, token, queries[: 2 * WARMING], clients=4, limit=LIMIT)
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
    added = median(times["http"]) - median(times["service"])
    table.add("the same over HTTP, one client", "+ ≤ 6 ms", f"+ {added:.1f} ms", added <= 6)


def many_clients(me: Any, requests: list[Any], clients: int, table: Table) -> None:
    """Clients at once: as the product answers, and with the vectors of the queries given to the server."""
    from benchmarks.web import concurrently, token_of, web_server

    token = token_of(me, "search")
    queries = [request.query for request in requests]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.npz"
        np.savez(path, texts=np.array(queries), vectors=np.vstack([r.embedding.vector for r in requests]))
        given = ("benchmarks.given:application", {"MEMORY_BENCH_VECTORS": str(path)})
        for named, bound, (application, environment) in (
            ("embedding included", True, ("memory_platform.wsgi:application", {})),
            ("vectors given, no embedding", False, given),
        ):
            with web_server(application, **environment) as port:
                concurrently(port, token, queries[: 2 * WARMING], clients=clients, limit=LIMIT)
                load = concurrently(port, token, queries * 4, clients=clients, limit=LIMIT)
            show(f"{clients} clients, {named}", load.times)
            rate, slow = len(load.times) / load.seconds, percentile(load.times, 0.95)
            table.add(
                f"{clients} clients over HTTP, {named}",
                "≥ 80 a second, p95 ≤ 400 ms, no error" if bound else "–",
                f"{rate:.0f} a second, p95 {slow:.0f} ms, {load.errors or 'no'} errors",
                (rate >= 80 and slow <= 400 and not load.errors) if bound else None,
            )


def receipts(me: Any, requests: list[Any], table: Table) -> None:
    """The receipt of one search with a context, and how many of its size are read, verified and replayed a second."""
    from apps.core.db.sessions import principal_session
    from apps.retrieval.receipts.columns import load_columns
    from apps.retrieval.receipts.replay import verified
    from apps.retrieval.selectors import stored_receipt
    from apps.search import found
    from apps.search.schemas import SearchRequest
    from apps.search.services import search
    from benchmarks.learning.stored import fill as store

    request = requests[0]
    own = vars(found)["embed_query"]
    vars(found)["embed_query"] = lambda query: request.embedding
    try:
        asked = SearchRequest(
            query=request.query, limit=CANDIDATES, include_context=True, token_budget=TOKEN_BUDGET
        )
        answer = search(caller=me, request=asked).document
    finally:
        vars(found)["embed_query"] = own
    with principal_session(me):
        one = stored_receipt(answer["retrieval_receipt_id"])
    assert len(one.receipt.candidates) == CANDIDATES
    ids = store(me, RECEIPTS, CANDIDATES)

    def load(_: Any) -> None:
        with principal_session(me):
            assert len(load_columns(ids).ids) == len(ids)

    load(None)
    together = 1000 * len(ids) / measured(load, [None] * 3).processor
    alone = 1000 / measured(lambda _: verified(one.document, one.checksum), [None] * len(ids)).processor
    named = f"receipt of {CANDIDATES} candidates with its context"
    table.add(named, "≤ 6 KB", f"{len(one.document):,} bytes", len(one.document) <= MAX_RECEIPT)
    table.add(
        f"receipts of {CANDIDATES} candidates read, verified and replayed, {RECEIPTS:,} at once",
        "≥ 10,000 a second of processor",
        f"{together:,.0f}",
        together >= 10_000,
    )
    table.add("the same, one document after the other", "–", f"{alone:,.0f}", None)


def beside_more(me: Any, requests: list[Any], alone: float, change: str, table: Table) -> None:
    """The same searches beside more principals; `alone`: what they took before, in lengths of the yardstick.

    Minutes lie between the two, in which the machine itself becomes faster or slower.
    """
    search = warmed(me, requests)
    beside, stick = in_turn({"search": search, YARDSTICK: yardstick}, requests).values()
    beside.show(f"search, other principals {change}")
    stick.show(YARDSTICK)
    growth = beside.p50 / stick.p50 / alone
    named = f"other principals {change}, by a yardstick in turn"
    table.add(named, "p50 grows ≤ 10 %", f"{100 * (growth - 1):+.0f} %", growth <= 1.1)


def yardstick(_: Any) -> None:
    """Some milliseconds of work that no data has a part in, half of it the database's and half Python's."""
    from apps.core.db.cursors import run

    run("SELECT sum(sqrt(n)) FROM generate_series(1, 50000) n").fetchone()
    sum(number**0.5 for number in range(50_000))


def of_many_nodes(large: Any, requests: list[Any], nodes: int, table: Table) -> None:
    """A principal with more vectors than are scanned one by one."""
    whole = measured(warmed(large, requests), requests)
    bare = measured(bare_candidates(large, requests), requests)
    whole.show(f"search, {nodes:,} nodes")
    bare.show(f"bare candidate SQL, {nodes:,} nodes")
    table.add(f"search of {nodes:,} nodes", "p50 ≤ 45 ms", f"{whole.p50:.1f} ms", whole.p50 <= 45)


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


def parts(identity: Any, requests: list[Any]) -> None:
    """What the database itself says of the channels that had something to answer."""
    from apps.core.db.sessions import principal_session
    from apps.retrieval.candidates import generate

    times: dict[str, list[float]] = {}
    for request in requests[:100]:
        with principal_session(identity):
            for report in generate(request).channels:
                if report.status == "ok":
                    times.setdefault(report.name, []).append(report.milliseconds)
    for name, spent in times.items():
        show(f"{name} channel, in the database", spent)


if __name__ == "__main__":
    main()
