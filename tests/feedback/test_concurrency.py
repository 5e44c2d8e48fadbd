"""Equal calls at once have one effect; different ones wait in line; nothing deadlocks."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from apps.core.db.sessions import principal_session
from apps.traces.api_base import retried
from apps.traces.models import ActionReceipt, Activation
from tests.feedback.test_outcomes import confirm
from tests.support.traces import climb, graph_row, issue, page, ranked, save, source_of, walk

pytestmark = pytest.mark.django_db(transaction=True)
WORKERS = 8


def together(principal, calls):
    """Run the calls at the same moment, each in a thread and a session of its own."""
    barrier = Barrier(len(calls))

    def run(call):
        def once():
            with principal_session(principal):
                return call()

        try:
            barrier.wait(30)
            return retried(once)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def saved_trace(principal, *rows):
    with principal_session(principal):
        return save(rows).id


def test_equal_uses_at_once_have_one_effect_and_one_receipt(world) -> None:
    source = source_of(issue(7))
    trace = saved_trace(world.principal, ranked(issue(7)))
    answers = together(world.principal, [lambda: climb(trace, source, key="same")] * WORKERS)
    assert len({answer["receipt_id"] for answer in answers}) == 1
    with principal_session(world.principal):
        assert Activation.objects.get().usage == pytest.approx(1.7, abs=1e-3)
        assert ActionReceipt.objects.count() == 1


def test_different_uses_at_once_give_what_one_after_the_other_would(world) -> None:
    source = source_of(issue(7))
    trace = saved_trace(world.principal, ranked(issue(7)))
    calls = [lambda key=key: climb(trace, source, key=f"k{key}") for key in range(WORKERS)]
    answers = together(world.principal, calls)
    applied = [sum(change["applied"] for change in answer["changes"]) for answer in answers]
    assert sorted(applied) == [0] * (WORKERS - 1) + [3]
    with principal_session(world.principal):
        assert Activation.objects.get().usage == pytest.approx(1.7, abs=1e-3)


def test_saving_using_and_confirming_the_same_sources_at_once_ends(world) -> None:
    rows = [ranked(issue(number), number) for number in range(1, 8)]
    graph = graph_row(page("c"), [walk("a", "b", "c")])
    traces = [saved_trace(world.principal, *rows, graph) for _ in range(4)]
    calls = []
    for trace in traces:
        calls.append(
            lambda trace=trace: climb(trace, source_of(page("c"))) and confirm(trace, source_of(page("c")))
        )
        calls.append(lambda: save([*list(reversed(rows)), graph]))
    assert len(together(world.principal, calls)) == 8
    with principal_session(world.principal):
        from apps.feedback.tasks import verify

        assert Activation.objects.count() == 8
    assert verify(1000)[1] < 1e-9


def test_equal_confirmations_at_once_credit_once(world) -> None:
    graph = graph_row(page("c"), [walk("a", "b", "c")])
    trace = saved_trace(world.principal, graph)
    with principal_session(world.principal):
        climb(trace, source_of(page("c")))
    calls = [lambda key=key: confirm(trace, source_of(page("c")), key=f"k{key}") for key in range(WORKERS)]
    answers = together(world.principal, calls)
    credited = [change["reason"] for answer in answers for change in answer["changes"]]
    assert credited.count("confirmed_path") == 2
    assert credited.count("trace_already_credited") == 2 * (WORKERS - 1)
