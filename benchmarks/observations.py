"""Measures the journal of searches: what it adds to a search, how fast due rows go, what its status costs.

    python -m benchmarks.observations [--nodes 2000] [--rounds 200] [--due 20000] [--rows 100000]

Times are in milliseconds on this machine. Searches of one that takes part and of one that does not alternate, so that
both meet the same machine. Expiry is compared with a bare DELETE of as many rows, and status read at a full journal.
"""

import argparse
import json
import os
import time
from typing import Any

from benchmarks.database import analyze, own_database
from benchmarks.measuring import measured, median, show

KEY = "only-for-benchmarks-" * 3

# Rows that came due an hour ago, or with a month to live; each with a text.
FILL = """
WITH record AS (
  INSERT INTO observations_observation
    (id, workspace_id, principal_id, corpus, observed_at, record_expires_at, query_fingerprint, fingerprint_key_id,
     fingerprint_version, text_disposition, purpose, consent_version, snapshot)
  SELECT gen_random_uuid(), %(workspace)s, %(principal)s, 'shared', now() - interval '2 days' - n * interval '1 ms',
    now() + %(left)s::interval, repeat('0', 64), 'k', 'hmac-sha256:nfc-trim-v1', 'retained', 'p', 'c', %(snapshot)s
  FROM generate_series(1, %(count)s) n
  RETURNING id, workspace_id, principal_id, observed_at, text_disposition)
INSERT INTO observations_observation_text
  (observation_id, workspace_id, principal_id, observed_at, text_disposition, query_text, text_expires_at)
SELECT record.*, 'a query of some words', now() + %(left)s::interval FROM record
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--nodes", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--due", type=int, default=20_000)
    parser.add_argument("--rows", type=int, default=100_000)
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
    searches(inside, outside, options.nodes, options.rounds)
    expiry(inside, options.due)
    status(inside, options.rows)


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


def searches(inside: Any, outside: Any, nodes: int, rounds: int) -> None:
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
    requests = [texts.request() for _ in range(rounds + 20)]
    given = {request.query: request.embedding for request in requests}
    vars(found)["embed_query"] = given.__getitem__

    def once(caller: Any, request: Any) -> float:
        asked = SearchRequest(query=request.query, limit=LIMIT)
        start = time.perf_counter()
        document = search(caller=caller, request=asked, verified=True).document
        spent = 1000 * (time.perf_counter() - start)
        assert ("_meta" in document) == (caller is inside)
        return spent

    times: dict[str, list[float]] = {"outside": [], "inside": []}
    for number, request in enumerate(requests):
        for name, caller in (("outside", outside), ("inside", inside)):
            spent = once(caller, request)
            if number >= 20:
                times[name].append(spent)
    print(f"A search of {nodes} nodes, limit {LIMIT}, trace committed, {rounds} of each in turn")
    show("takes no part", times["outside"])
    show("takes part, record committed", times["inside"])
    pairs = [a - b for a, b in zip(times["inside"], times["outside"], strict=True)]
    print(f"  the record adds {median(pairs):.2f} ms at the median of pairs (must: ≤ 3)")
    # Processor time, which a busy machine leaves as it is.
    busy = [measured(lambda request, who=who: once(who, request), requests) for who in (outside, inside)]
    print(f"  and {busy[1].processor - busy[0].processor:.2f} ms of processor time")


def fill_due(me: Any, count: int, left: str) -> None:
    hit = dict.fromkeys(("sourceRef", "retrievedContentHash", "returnedContentHash"), "0" * 64)
    snapshot = {"version": 1, "hits": [{"id": str(n), "rank": n} | hit for n in range(1, 11)]}
    values = {
        "workspace": me.workspace_id,
        "principal": me.principal_id,
        "count": count,
        "left": left,
        "snapshot": json.dumps(snapshot),
    }
    with owner() as connection:
        connection.execute(FILL, values)
    analyze()


def expiry(me: Any, due: int) -> None:
    """Half of the rows by a bare DELETE of the owner, in batches as large, then the other half by the drain."""
    from apps.observations import retention
    from apps.operations.expiry import drain

    bare_batch = (
        "DELETE FROM observations_observation WHERE id IN (SELECT id FROM observations_observation "
        "WHERE record_expires_at <= now() ORDER BY record_expires_at LIMIT 5000)"
    )
    spent = []
    for drained in (False, True):
        fill_due(me, due, "-1 hour")
        start = time.perf_counter()
        if drained:
            assert drain(retention.NAME).counts["records"] >= due
        else:
            with owner() as connection:
                while connection.execute(bare_batch).rowcount:
                    pass
        spent.append(time.perf_counter() - start)
    print(f"Expiry of {due} records, each with a text")
    print(f"  drain {due / spent[1]:,.0f} rows a second, bare DELETE {due / spent[0]:,.0f}")
    print(f"  {spent[1] / spent[0]:.2f} × the bare DELETE")


def status(me: Any, rows: int) -> None:
    from apps.observations.status import read

    fill_due(me, rows, "30 days")
    times = []
    for _ in range(50):
        start = time.perf_counter()
        read()
        times.append(1000 * (time.perf_counter() - start))
    print(f"Status of a journal of {rows} records")
    show("in a session of its own", times)


if __name__ == "__main__":
    main()
