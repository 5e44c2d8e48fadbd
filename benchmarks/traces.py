"""Measures the feedback memory: saving, uses, history at depth, and the ledger's verification.

    python -m benchmarks.traces [--traces 11000] [--edges 20000] [--nodes 2000] [--rounds 200]

Times are p50 and p95 in milliseconds on this machine, beside processor time (Python and the connection's process of
PostgreSQL); ratios compare with bare SQL of the same run.
"""

import argparse
import os
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.database import analyze, own_database
from benchmarks.measuring import measured, median, show, timed

SOURCES = 20
USES = 10
PAGE = 10
DEEP_PAGE = 1000

FILL_EDGES = """
WITH trace AS (SELECT id FROM traces_trace WHERE principal_id = %(principal)s LIMIT 1),
receipt AS (
  INSERT INTO traces_action_receipt (id, workspace_id, principal_id, trace_id, kind, recorded_at, actor, policy_id,
    body)
  SELECT gen_random_uuid(), %(workspace)s, %(principal)s, trace.id, 'confirmed', now(), 'principal',
    gen_random_uuid(), '{}' FROM trace RETURNING id, trace_id),
strength AS (
  INSERT INTO feedback_edge_strength (id, workspace_id, principal_id, edge_key, strength, updated_at)
  SELECT gen_random_uuid(), %(workspace)s, %(principal)s, 'edge ' || n, 0.25, now()
  FROM generate_series(1, %(count)s) n)
INSERT INTO feedback_credit (id, workspace_id, principal_id, trace_id, edge_key, receipt_id, delta, credited_at, active)
SELECT gen_random_uuid(), %(workspace)s, %(principal)s, receipt.trace_id, 'edge ' || n, receipt.id, 0.25, now(), true
FROM receipt, generate_series(1, %(count)s) n
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=11_000)
    parser.add_argument("--edges", type=int, default=20_000)
    parser.add_argument("--nodes", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    with own_database():
        run(options)


def run(options: argparse.Namespace) -> None:
    from benchmarks.worlds import fill_traces, principal, workspace

    space = workspace("traces-benchmark")
    me, reader = principal(space, "token:writer"), principal(space, "token:reader")
    rounds = list(range(options.rounds))
    fill_traces(reader, options.traces)
    fill(FILL_EDGES, reader, options.edges)
    for number in rounds[:20]:
        save(me, number, SOURCES)
    analyze()
    saving(me, rounds)
    using(me, rounds)
    front_door(space, options.nodes, rounds)
    history(reader, rounds)
    ledger(options.edges)


def fill(sql: str, identity: Any, count: int) -> None:
    import psycopg

    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as owner:
        owner.execute(
            sql, {"workspace": identity.workspace_id, "principal": identity.principal_id, "count": count}
        )


def provenance(number: int) -> Any:
    from apps.retrieval.schemas import Provenance

    return Provenance("acme/app", "issue", number, "2026-01-02T03:04:05Z")


def save(identity: Any, number: int, sources: int) -> Any:
    """Record and save a trace of so many sources, in a session with its commit."""
    from apps.core.db.sessions import principal_session
    from apps.traces.recording import ReturnedRow, record
    from apps.traces.services.save import NewTrace, save_trace

    components = {"features": dict.fromkeys("abcdef", 0.123456), "raw": {"bm25": 7.5, "cosine": 0.75}}
    rows = [
        ReturnedRow(
            f"results[{n}]", "keyword", None, provenance(n + 1), rank=n + 1, score=0.5, components=components
        )
        for n in range(sources)
    ]
    new = NewTrace(
        mode="search",
        query=f"words {number}",
        request={"limit": sources},
        settings={"mode": "search"},
        scopes=None,
        recording=record(rows),
        recorded_at=datetime.now(UTC),
        latency_ms=5,
    )
    with principal_session(identity):
        return save_trace(new=new)


def empty(identity: Any) -> None:
    from apps.core.db.sessions import principal_session

    with principal_session(identity):
        pass


def saving(me: Any, rounds: list[int]) -> None:
    print(f"Saving a trace, committed ({len(rounds)} rounds)")
    nothing = measured(lambda _: empty(me), rounds)
    bare = measured(lambda number: save(me, number, 0), rounds)
    full = measured(lambda number: save(me, number, SOURCES), rounds)
    nothing.show("empty session")
    bare.show("zero hit")
    full.show(f"{SOURCES} sources")
    print(
        f"  {SOURCES} sources add {full.p50 - bare.p50:.2f} ms to a zero hit (must: ≤ 4), "
        f"{full.processor - bare.processor:.2f} ms of processor time"
    )


def using(me: Any, rounds: list[int]) -> None:
    """Batches of ten uses, each on a trace of its own."""
    from apps.core.db.sessions import principal_session
    from apps.traces.schemas import UseEntry
    from apps.traces.services.uses import record_uses

    saved = [save(me, number, SOURCES) for number in rounds]

    def batch(number: int) -> None:
        uses = [
            UseEntry(source_id=source, stage="selected") for source in list(saved[number].activation)[:USES]
        ]
        with principal_session(me):
            record_uses(trace_id=saved[number].id, idempotency_key=f"key {number}", uses=uses)

    print(f"A batch of {USES} uses, committed")
    spent = measured(batch, rounds)
    spent.show(f"{USES} uses")
    print(f"  p50 {spent.p50:.2f} ms (must: ≤ 8), {spent.processor:.2f} ms of processor time")


def front_door(space: Any, nodes: int, rounds: list[int]) -> None:
    """A whole search of the service, trace committed, beside its candidate statements; embedding excluded."""
    from apps.search import found
    from apps.search.schemas import SearchRequest
    from apps.search.services import search
    from benchmarks.corpora import LIMIT, Texts, without_vector_index
    from benchmarks.corpora import fill as remember
    from benchmarks.search import candidates_once, search_once
    from benchmarks.worlds import principal

    texts = Texts(seed=7)
    me = principal(space, "token:searcher")
    with without_vector_index():
        remember(me, nodes, texts)
    analyze()
    requests = [texts.request() for _ in rounds]
    given = {request.query: request.embedding for request in requests}
    vars(found)["embed_query"] = given.__getitem__

    def whole(request: Any) -> None:
        fitted = search(caller=me, request=SearchRequest(query=request.query, limit=LIMIT))
        assert fitted.document["trace_id"]

    for request in requests[:20]:
        whole(request)
    print(f"A search of {nodes} nodes, limit {LIMIT}, trace committed")
    times, bare = timed(whole, requests), timed(lambda request: candidates_once(me, request), requests)
    retrieval, nothing = (
        timed(lambda request: search_once(me, request), requests),
        timed(lambda _: empty(me), rounds),
    )
    show("search with its trace", times)
    show("retrieval in its session", retrieval)
    show("candidate statements in theirs", bare)
    print(f"  search ÷ (candidates + empty session): {median(times) / (median(bare) + median(nothing)):.2f}")


def history(reader: Any, rounds: list[int]) -> None:
    from apps.core.db.sessions import principal_session
    from apps.feedback.schemas import HistoryQuery
    from apps.feedback.selectors import history as listed

    cursor = None
    with principal_session(reader):
        for _ in range(DEEP_PAGE - 1):
            cursor = listed(HistoryQuery(limit=PAGE, cursor=cursor))["next_cursor"]

    def page(at: str | None) -> None:
        with principal_session(reader):
            listed(HistoryQuery(limit=PAGE, cursor=at))

    print(f"History, pages of {PAGE}")
    first = timed(lambda _: page(None), rounds)
    deep = timed(lambda _: page(cursor), rounds)
    show("page 1", first)
    show(f"page {DEEP_PAGE}", deep)
    print(f"  page {DEEP_PAGE} ÷ page 1: {median(deep) / median(first):.2f}")


BARE_LEDGER = """
SELECT count(*) FROM (
  SELECT s.id, s.strength - sum(c.delta) AS drift FROM feedback_edge_strength s
  LEFT JOIN feedback_credit c ON c.principal_id = s.principal_id AND c.edge_key = s.edge_key AND c.active
  GROUP BY s.id) compared
"""


def ledger(edges: int) -> None:
    import psycopg

    from apps.feedback.tasks import verify

    print("Verification of the ledger")
    start = time.perf_counter()
    checked = 0
    while checked < edges:
        checked += verify(1000)[0]
    spent = time.perf_counter() - start
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as owner:
        start = time.perf_counter()
        owner.execute(BARE_LEDGER).fetchone()
        bare = time.perf_counter() - start
    rate = checked / spent * timedelta(minutes=1).total_seconds()
    print(f"  {checked} edges in {spent:.2f} s: {rate:,.0f} a minute (must: ≥ 20,000)")
    print(f"  {spent / bare:.1f} × one bare comparison of all edges, without decay and rotation")


if __name__ == "__main__":
    main()
