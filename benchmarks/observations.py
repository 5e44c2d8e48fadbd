"""Measures the journal of searches: what it adds to a search, how fast due rows go, what its status costs.

    python -m benchmarks.observations [--nodes 2000] [--rounds 200] [--due 100000] [--rows 1000000]

The bounds speak of `--due 1000000 --rows 10000000`, which takes about 10 GiB of disk; smaller numbers show ratios and
plans. It ends with one table of every bound. Times are in milliseconds on this machine, processor time (Python and
the connection's process of PostgreSQL) beside them. Searches with the journal off, of one that takes no part and of
one that does take turns, so that all meet the same machine. Expiry is compared with a bare DELETE of as many rows.
"""

import argparse
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count as counting_up
from pathlib import Path
from typing import Any

from benchmarks.bounds import Bound, report
from benchmarks.database import analyze, own_database
from benchmarks.measuring import measured, median, show
from benchmarks.web import processor_ms

KEY = "only-for-benchmarks-" * 3
WARM_UP = 20
CHUNK = 1_000_000
OVERDUE = 5_000
MIB = 2**20
MOST_MIB = 32.0
"""A drain that kept what it deletes would grow by more than a kilobyte a row."""

_fills = counting_up()

# Records of the past two days with so long to live, every `texts`-th with a text. Ids ascend, as the platform's do.
FILL = """
WITH record AS (
  INSERT INTO observations_observation
    (id, workspace_id, principal_id, corpus, observed_at, record_expires_at, query_fingerprint, fingerprint_key_id,
     fingerprint_version, text_disposition, purpose, consent_version, snapshot)
  SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(%(base)s + n), 12, '0'))::uuid,
    %(workspace)s, %(principal)s, 'shared',
    now() - interval '2 days' - n * interval '1 ms',
    now() + %(left)s::interval + n * interval '1 ms', repeat('0', 64), 'k', 'hmac-sha256:nfc-trim-v1',
    CASE WHEN n %% %(texts)s::int = 0 THEN 'retained' ELSE 'disabled' END, 'p', 'c', %(snapshot)s
  FROM generate_series(%(first)s::int, %(last)s::int) n
  RETURNING id, workspace_id, principal_id, observed_at, text_disposition)
INSERT INTO observations_observation_text
  (observation_id, workspace_id, principal_id, observed_at, text_disposition, query_text, text_expires_at)
SELECT record.*, 'a query of some words', now() + %(left)s::interval FROM record
WHERE record.text_disposition = 'retained'
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--nodes", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--due", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    os.environ |= {
        "OBSERVATION_MODE_CEILING": "platform-text",
        "OBSERVATION_HMAC_KEYS": json.dumps({"k": KEY}),
        "OBSERVATION_HMAC_ACTIVE_KEY": "k",
    }
    with own_database():
        run(options)


def run(options: argparse.Namespace) -> None:
    from benchmarks.worlds import fill_traces, principal, workspace

    space = workspace("observations-benchmark")
    inside, outside = principal(space, "token:inside"), principal(space, "token:outside")
    for each in (inside, outside):
        fill_traces(each, 1_000)
    turn_on(inside)
    rows: list[Bound] = []
    if options.rounds:
        rows += searches(inside, outside, options.nodes, options.rounds)
    if options.due:
        rows += expiry(inside, options.due)
    if options.rows:
        rows += status(inside, options.rows)
    print()
    report(rows)


def owner() -> Any:
    import psycopg

    return psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True)


def turn_on(me: Any) -> None:
    """A policy and an enrolment, as an approved run and an operator would have left them."""
    from apps.core.ids import uuid7
    from apps.core.policies import policy_hash

    document = {"mode": "platform-text", "text_days": None, "record_hours": 2160, "collect_private": True}
    with owner() as connection:
        connection.execute(
            "INSERT INTO core_storedpolicy (id, workspace_id, kind, version, document, reason, hash) "
            "VALUES (%s, %s, 'collection', 1, %s, '', %s)",
            [uuid7(), me.workspace_id, json.dumps(document), policy_hash("collection", document)],
        )
        connection.execute(
            "INSERT INTO observations_enrolment (id, workspace_id, principal_id, purpose, consent_version) "
            "VALUES (%s, %s, %s, 'benchmark', '1')",
            [uuid7(), me.workspace_id, me.principal_id],
        )


@dataclass
class Caller:
    """Who searches, and whether the deployment allows a journal at all."""

    name: str
    identity: Any
    ceiling: str = "platform-text"
    times: list[float] = field(default_factory=list)


def searches(inside: Any, outside: Any, nodes: int, rounds: int) -> list[Bound]:
    from django.conf import settings

    from apps.search import found
    from apps.search.schemas import SearchRequest
    from apps.search.services import search
    from benchmarks.corpora import LIMIT, Texts, fill, without_vector_index

    # The same words for both, so that they rank and answer alike.
    with without_vector_index():
        for each in (inside, outside):
            fill(each, nodes, Texts(seed=7))
    analyze()
    texts = Texts(seed=8)
    requests = [texts.request() for _ in range(rounds + WARM_UP)]
    given = {request.query: request.embedding for request in requests}
    vars(found)["embed_query"] = given.__getitem__

    def once(caller: Caller, request: Any) -> None:
        settings.OBSERVATION_MODE_CEILING = caller.ceiling
        asked = SearchRequest(query=request.query, limit=LIMIT)
        document = search(caller=caller.identity, request=asked, verified=True).document
        assert ("_meta" in document) == (caller is enrolled)

    off = Caller("the journal is off", outside, ceiling="off")
    other = Caller("takes no part", outside)
    enrolled = Caller("takes part, record committed", inside)
    callers = (off, other, enrolled)
    for number, request in enumerate(requests):
        # Each goes first in turn: who comes second finds warmer caches.
        for place in range(len(callers)):
            caller = callers[(number + place) % len(callers)]
            start = time.perf_counter()
            once(caller, request)
            if number >= WARM_UP:
                caller.times.append(1000 * (time.perf_counter() - start))
    print(f"A search of {nodes} nodes, limit {LIMIT}, trace committed, {rounds} of each in turn")
    busy = {}
    for caller in callers:
        show(caller.name, caller.times)
        busy[caller.name] = measured(partial(once, caller), requests)
    sent = {caller.name: statements(partial(once, caller, requests[0])) for caller in callers}
    rows = []
    for label, caller, base, must, most in (
        (
            "a search of one that takes part, over one that does not",
            enrolled,
            other,
            "≤ 3 ms more at p50",
            3.0,
        ),
        ("a search of one that takes no part, over the journal off", other, off, "nothing", None),
    ):
        more = median([a - b for a, b in zip(caller.times, base.times, strict=True)])
        processor = busy[caller.name].processor - busy[base.name].processor
        asked = sent[caller.name] - sent[base.name]
        told = f"{more:.2f} ms; {processor:.2f} ms of processor; {asked} statements"
        rows.append(Bound(label, must, told, asked == 0 if most is None else more <= most))
    return rows


def statements(call: Any) -> int:
    """How many statements a call sends, once caches are warm."""
    import psycopg

    count, execute = 0, psycopg.Cursor.execute

    def counting(cursor: Any, *given: Any, **more: Any) -> Any:
        nonlocal count
        count += 1
        return execute(cursor, *given, **more)

    call()
    psycopg.Cursor.execute = counting  # type: ignore[method-assign, assignment]
    try:
        call()
    finally:
        psycopg.Cursor.execute = execute  # type: ignore[method-assign]
    return count


def fill(me: Any, count: int, left: str, *, texts: int = 1, hits: int = 10) -> None:
    """Set-based, as the owner; a chunk a transaction, so that no single one fills the disk with its log."""
    hit = dict.fromkeys(("sourceRef", "retrievedContentHash", "returnedContentHash"), "0" * 64)
    snapshot = {"version": 1, "hits": [{"id": str(n), "rank": n} | hit for n in range(1, hits + 1)]}
    values = {
        "workspace": me.workspace_id,
        "principal": me.principal_id,
        "left": left,
        "texts": texts,
        "snapshot": json.dumps(snapshot),
    }
    with owner() as connection:
        base = next(_fills) * 2**32
        for first in range(1, count + 1, CHUNK):
            last = min(first + CHUNK - 1, count)
            connection.execute(FILL, values | {"base": base, "first": first, "last": last})
    analyze()


def expiry(me: Any, due: int) -> list[Bound]:
    """The rows by a bare DELETE of the owner, in batches as large, then as many by the drain."""
    from django.db import connection as django

    from apps.observations import retention
    from apps.observations.status import read
    from apps.operations.expiry import drain

    bare_batch = (
        "DELETE FROM observations_observation WHERE id IN (SELECT id FROM observations_observation "
        "WHERE record_expires_at <= now() ORDER BY record_expires_at LIMIT 5000)"
    )
    fill(me, due, "-2 hours")
    with owner() as connection:
        bare = Spent(connection.info.backend_pid)
        while connection.execute(bare_batch).rowcount:
            pass
        bare.end()
    fill(me, due, "-2 hours")
    with django.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        backend = cursor.fetchone()[0]
    with growth(os.getpid(), backend) as grown:
        drained = Spent(backend)
        done = drain(retention.NAME)
        drained.end()
    assert done.counts["records"] == due
    start = time.perf_counter()
    assert not read().values["expired_records"]
    first = 1000 * (time.perf_counter() - start)
    ratio, most = drained.seconds / bare.seconds, max(grown.values())
    rate = f"{due / drained.seconds:,.0f} rows a second against {due / bare.seconds:,.0f}"
    processor = drained.processor / bare.processor
    memory = ", ".join(f"{name} {more:.1f} MiB" for name, more in grown.items())
    return [
        Bound(
            f"drain of {due:,} records with texts ÷ bare DELETE",
            "≤ 1.5",
            f"{ratio:.2f}; {rate}",
            ratio <= 1.5,
        ),
        Bound("the same of PostgreSQL's processor time", "–", f"{processor:.2f}"),
        Bound("memory during it, over its start", f"flat: ≤ {MOST_MIB:.0f} MiB", memory, most <= MOST_MIB),
        Bound("the status right after it, before any vacuum", "–", f"{first:.1f} ms"),
    ]


class Spent:
    """Seconds since it was made, and processor time of a connection's process in milliseconds, until `end`."""

    def __init__(self, backend: int) -> None:
        self._backend = backend
        self._start, self._processor = time.perf_counter(), processor_ms(backend)

    def end(self) -> None:
        self.seconds = time.perf_counter() - self._start
        self.processor = processor_ms(self._backend) - self._processor


@contextmanager
def growth(*processes: int) -> Iterator[dict[str, float]]:
    """The most memory of their own of this process and of its connection's, in MiB above the start (Linux)."""
    watched = dict(zip(("Python", "PostgreSQL"), processes, strict=True))
    before = {name: anonymous(pid) for name, pid in watched.items()}
    grown = dict.fromkeys(watched, 0.0)
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.1):
            for name, pid in watched.items():
                grown[name] = max(grown[name], (anonymous(pid) - before[name]) / MIB)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield grown
    finally:
        over.set()
        watcher.join()


def anonymous(pid: int) -> int:
    """Bytes of memory that is not a file's and no shared buffer of the server."""
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "RssAnon" in line]
    return int(line.split()[1]) * 1024


def status(me: Any, rows: int) -> list[Bound]:
    fill(me, rows, "30 days", texts=10, hits=1)
    print(f"Status of a journal of {rows:,} records, one in ten with a text")
    quiet, none = readings("none overdue")
    fill(me, OVERDUE, "-2 hours")
    busy, all_due = readings(f"{OVERDUE:,} overdue")
    return [
        Bound(f"status at {rows:,} records", "≤ 20 ms at p50", f"{quiet:.1f} ms", quiet <= 20),
        Bound(f"the same with {OVERDUE:,} records and texts overdue", "–", f"{busy:.1f} ms"),
        Bound("scans of a whole table by both", "0", str(none + all_due), none + all_due == 0),
    ]


def readings(label: str, times: int = 50) -> tuple[float, int]:
    """The median of reading the status, in milliseconds, and how often a whole table was scanned for it."""
    from apps.observations.status import read

    spent, before = [], scans()
    for _ in range(times):
        start = time.perf_counter()
        read()
        spent.append(1000 * (time.perf_counter() - start))
    show(label, spent)
    return median(spent), scans() - before


def scans() -> int:
    """Scans of all records or texts so far."""
    with owner() as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        found = connection.execute(
            "SELECT sum(seq_scan) FROM pg_stat_user_tables "
            "WHERE relname IN ('observations_observation', 'observations_observation_text')"
        ).fetchone()
    return int(found[0])


if __name__ == "__main__":
    main()
