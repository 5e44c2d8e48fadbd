"""Measures lists at depth: the trace explorer of the admin and the history of the API over many traces.

    python -m benchmarks.admin_lists [--traces 1000000] [--principals 100] [--rounds 20]

The traces are written set-based by the owner, one every two seconds back in time, half of them the reader's. Times
are p50 and p95 in milliseconds on this machine; ratios compare pages of one run.
"""

import argparse
import logging
import os
import time
from typing import Any

from benchmarks.database import analyze, own_database
from benchmarks.measuring import median, show, timed
from benchmarks.traces import PAGE

DEEP_PAGE = 1000
SHARE_OF_READER = 0.5
"""Of all traces; the others' are mixed in with them by time."""

FILL = """
INSERT INTO traces_trace (id, workspace_id, principal_id, recorded_at, mode, query, request, settings, recording,
  source_count, policy_id, latency_ms, retention_class, expires_at)
SELECT gen_random_uuid(), %(workspace)s,
  CASE WHEN n %% %(every)s = 0 THEN %(reader)s ELSE (%(others)s::uuid[])[1 + n %% %(count_others)s] END,
  now() - make_interval(secs => n * 2), 'search', 'words ' || n, '{"limit": 10}', '{"mode": "search"}',
  '{"status": "complete"}', 0, gen_random_uuid(), 5, 'trace', now() + interval '80 days'
FROM generate_series(1, %(count)s) n
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=1_000_000)
    parser.add_argument("--principals", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    with own_database():
        run(options)


def run(options: argparse.Namespace) -> None:
    from benchmarks.worlds import principal, workspace

    space = workspace("lists-benchmark")
    reader = principal(space, "token:reader")
    others = [principal(space, f"token:other-{number}") for number in range(options.principals - 1)]
    start = time.perf_counter()
    fill(space, reader, others, options.traces)
    analyze()
    print(f"{options.traces:,} traces, {options.principals} principals ({time.perf_counter() - start:.0f} s)")
    rounds = list(range(options.rounds))
    explorer(space, rounds)
    history(reader, rounds)


def fill(space: Any, reader: Any, others: list[Any], count: int) -> None:
    import psycopg

    values = {
        "workspace": space,
        "reader": reader.principal_id,
        "others": [other.principal_id for other in others],
        "count_others": len(others),
        "every": round(1 / SHARE_OF_READER),
        "count": count,
    }
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as owner:
        owner.execute(FILL, values)


def explorer(space: Any, rounds: list[int]) -> None:
    """Pages of the trace explorer as a browser gets them, without the network."""
    from django.test import Client
    from django.urls import reverse

    user = staff(space)
    client = Client()
    # A line for each request is what a server writes, not what this prints.
    logging.disable(logging.INFO)
    client.force_login(user)
    url = reverse("admin:traces_trace_changelist")

    def page(cursor: str | None) -> Any:
        answer = client.get(url, {"cursor": cursor} if cursor else {}, headers={"host": "localhost"})
        assert answer.status_code == 200, answer.status_code
        return answer

    pages: dict[str, str | None] = {"first page": None}
    for share in (0.1, 0.5, 0.99):
        pages[f"page at {share:.0%} of the depth"] = cursor_at(user, share)
    times: dict[str, list[float]] = {label: [] for label in pages}
    for cursor in pages.values():
        assert not page(cursor).context_data["cl"].lost
    for _ in rounds:
        # In turn, so that all meet the same machine.
        for label, cursor in pages.items():
            times[label] += timed(page, [cursor])
    print("Trace explorer, 50 rows a page, rendered")
    for label, spent in times.items():
        show(label, spent)
    deepest = median(times["page at 99% of the depth"])
    print(f"  deepest ÷ first page: {deepest / median(times['first page']):.2f}; must: each ≤ 300 ms")


def staff(space: Any) -> Any:
    from django.contrib.auth.models import User

    from apps.accounts.models import Workspace
    from apps.accounts.services import give_grant
    from apps.core.db.sessions import staff_session

    user = User.objects.create_user("reviewer", password="only-for-benchmarks", is_staff=True)
    root = User.objects.filter(is_superuser=True).first()
    assert root is not None
    with staff_session(root):
        workspace = Workspace.objects.get(pk=space)
        give_grant(user=user, workspace=workspace, grant="view_traces", reason="to measure")
    return user


def cursor_at(user: Any, share: float) -> str:
    """The cursor of the page that begins after this share of the traces."""
    from apps.core.db.sessions import staff_session
    from apps.core.pages import Binding, encode_cursor
    from apps.traces.models import Trace

    with staff_session(user):
        rows = Trace.objects.order_by("-recorded_at", "-id").values_list("recorded_at", "id")
        oldest, newest = rows.reverse()[0], rows[0]
        at = newest[0] - (newest[0] - oldest[0]) * share
        position = rows.filter(recorded_at__lte=at)[0]
    filters: dict[str, Any] = {"filters": {}, "workspace": None}
    binding = Binding(str(user.pk), "admin:traces.trace", ("-recorded_at", "-id"), filters)
    return encode_cursor(binding, "next", position)


def history(reader: Any, rounds: list[int]) -> None:
    """Page 1 beside page 1,000 of the API's history."""
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

    page(None)
    page(cursor)
    first: list[float] = []
    deep: list[float] = []
    for _ in rounds * 10:
        # In turn, so that both meet the same machine.
        first += timed(lambda _: page(None), [0])
        deep += timed(lambda _: page(cursor), [0])
    print(f"History of one principal, pages of {PAGE}")
    show("page 1", first)
    show(f"page {DEEP_PAGE}", deep)
    print(f"  page {DEEP_PAGE} ÷ page 1: {median(deep) / median(first):.2f} (must: 0.8 to 1.2)")


if __name__ == "__main__":
    main()
