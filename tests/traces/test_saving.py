"""A trace is saved whole or not at all, with what its rows say of themselves."""

from dataclasses import replace

import pytest

from apps.core import clock
from apps.core.db.sessions import principal_session
from apps.retrieval.schemas import Provenance
from apps.traces.exceptions import SaveFailed
from apps.traces.models import Activation, PathEdge, Trace, TraceSource
from apps.traces.recording import record
from tests.support.factories import make_world
from tests.support.statements import sent
from tests.support.traces import graph_row, issue, mention, page, ranked, save, source_of, walk

pytestmark = pytest.mark.django_db


@pytest.fixture
def world():
    return make_world()


def nameless() -> Provenance:
    return Provenance("acme/app", "issue", None, "2026-01-02T03:04:05Z")


def test_a_trace_of_many_sources_costs_as_many_queries_as_one_of_none(world) -> None:
    with principal_session(world.principal):
        save([])  # the policy is read once by a process
        for rows in ([], [ranked(issue(number), number) for number in range(1, 51)]):
            with sent() as statements:
                save(rows)
            assert len(statements) == 3


def test_sources_keep_axes_ranks_and_paths(world) -> None:
    with principal_session(world.principal):
        save([ranked(page("a")), graph_row(page("c"), [walk("a", "b", "c")])])
        sources = {row.source_id: row for row in TraceSource.objects.all()}
        a, c = sources[source_of(page("a"))], sources[source_of(page("c"))]
        assert (a.axes, a.rank, a.graph_rank, a.location) == (["keyword"], 1, None, "results[0]")
        assert (c.axes, c.rank, c.graph_rank, c.hop, c.score) == (["graph"], None, 1, 2, None)
        steps = PathEdge.objects.order_by("step").values_list("edge_key", flat=True)
        assert list(steps) == [mention("a", "b").key, mention("b", "c").key]


def test_a_source_of_several_rows_is_saved_once_with_the_best_rank(world) -> None:
    rows = [
        ranked(issue(7), 0, rank=3, score=0.2),
        ranked(issue(7), 1, rank=1, score=0.9),
        graph_row(issue(7), []),
    ]
    with principal_session(world.principal):
        saved = save(rows)
        row = TraceSource.objects.get()
        assert (row.axes, row.rank, row.score) == (["keyword", "graph"], 1, 0.9)
        assert Trace.objects.get().source_count == 1
        assert saved.activation[source_of(issue(7))].retrieved == pytest.approx(0.1)


def test_mixed_axes_are_recorded_in_part_at_exact_positions() -> None:
    rows = [
        ranked(issue(7), 0),
        ranked(nameless(), 1),
        graph_row(page("b"), [walk("a", "b")]),
        graph_row(nameless(), [walk("a", "b")], 1),
    ]
    recording = record(rows)
    assert recording.document == {
        "status": "partial",
        "recorded_sources": 2,
        "excluded_sources": 2,
        "exclusions": [
            {"location": "results[1]", "reason": "canonical_identity_unavailable"},
            {"location": "graph_results[1]", "reason": "canonical_identity_unavailable"},
        ],
        "excluded_graph_paths": 0,
        "graph_exclusions": [],
    }
    assert list(recording.marks) == [row.location for row in rows]


def test_withheld_rows_are_excluded_and_no_rows_are_complete() -> None:
    withheld = record([ranked(issue(7), 0, withheld=True)])
    assert withheld.document["exclusions"] == [{"location": "results[0]", "reason": "withheld"}]
    assert withheld.unresolved
    nothing = record([])
    assert nothing.document["status"] == "complete"
    assert not nothing.unresolved


def test_an_unexpected_exception_is_no_exclusion(monkeypatch) -> None:
    def broken(provenance):
        raise ZeroDivisionError

    monkeypatch.setattr("apps.traces.recording.identify", broken)
    with pytest.raises(ZeroDivisionError):
        record([ranked(issue(7))])


@pytest.mark.parametrize(
    "path",
    [
        walk("a", "b", "c", "d"),
        replace(walk("a", "b"), nodes=(walk("a", "b").nodes[0], None)),
        replace(walk("a", "b"), nodes=walk("a", "c").nodes),
        replace(walk("a", "b"), edges=(replace(mention("a", "b"), kind="link"),)),
        replace(walk("a", "b"), edges=(replace(mention("a", "b"), repo="acme/other"),)),
        replace(walk("a", "b"), edges=()),
    ],
)
def test_a_path_that_cannot_be_verified_is_saved_as_none(path) -> None:
    recording = record([graph_row(page("b"), [path], hop=1)])
    mark = recording.marks["graph_results[0]"]
    assert mark.source_id is not None
    assert mark.path_exclusion == "unverifiable_graph_path"
    assert recording.sources[0].paths == ()
    assert recording.document["excluded_graph_paths"] == 1
    assert recording.document["status"] == "complete"


def test_a_verified_path_beside_an_unverifiable_one_is_kept() -> None:
    bad = replace(walk("x", "b"), nodes=(None, walk("x", "b").nodes[1]))
    recording = record([graph_row(page("b"), [bad, walk("a", "b")], hop=1)])
    assert recording.sources[0].paths == (walk("a", "b").edges,)
    assert recording.marks["graph_results[0]"].path_exclusion is None


def test_a_member_folded_under_a_row_knows_under_which_source(world) -> None:
    rows = [
        ranked(issue(7), 0),
        replace(
            ranked(issue(8), 0), location="results[0].same_entity.others[0]", under="results[0]", rank=None
        ),
    ]
    with principal_session(world.principal):
        save(rows)
        folded = TraceSource.objects.get(source_id=source_of(issue(8)))
        assert (folded.folded_under, folded.location) == (0, "results[0].same_entity.others[0]")
        assert TraceSource.objects.get(source_id=source_of(issue(7))).folded_under is None


def test_more_sources_or_characters_than_allowed_are_not_saved(world) -> None:
    with principal_session(world.principal):
        with pytest.raises(SaveFailed):
            save([ranked(issue(number), number) for number in range(1, 302)])
        with pytest.raises(SaveFailed):
            save([], settings={"padding": "x" * 300_001})
        assert not Trace.objects.exists()
        assert not Activation.objects.exists()
        save([ranked(issue(number), number) for number in range(1, 301)])
        assert Trace.objects.get().source_count == 300


def test_a_query_that_the_filter_refuses_is_not_kept(world) -> None:
    with principal_session(world.principal):
        save([], query="my password: hunter2hunter2")
        assert Trace.objects.get().query is None


@pytest.mark.parametrize("mode", ["search", "scan", "fetch", "context"])
def test_every_mode_is_saved_at_the_frozen_time_a_zero_hit_included(world, mode) -> None:
    with clock.frozen(clock.now()) as at, principal_session(world.principal):
        saved = save([], mode=mode, context_tokens=120 if mode == "context" else None)
        trace = Trace.objects.get()
        assert (trace.mode, trace.recorded_at, saved.recorded_at) == (mode, at.at, at.at)
        assert (trace.source_count, trace.recording["status"]) == (0, "complete")


def test_what_a_save_may_retry_is_tried_three_times_and_the_rest_once() -> None:
    from django.db import IntegrityError, OperationalError
    from psycopg import errors

    from apps.core.problems import Problem
    from apps.traces.api_base import retried

    def failing(outer, cause):
        tried = []

        def work():
            tried.append(1)
            raise outer from cause

        return tried, work

    for cause in (errors.DeadlockDetected(), errors.SerializationFailure()):
        tried, work = failing(OperationalError(), cause)
        with pytest.raises(Problem) as refused:
            retried(work)
        assert (len(tried), refused.value.shown_code) == (3, "memory_unavailable")
    tried, work = failing(OperationalError(), errors.LockNotAvailable())
    with pytest.raises(SaveFailed):
        retried(work, on_failure=lambda: SaveFailed("storage"))
    assert len(tried) == 1
    tried, work = failing(IntegrityError(), errors.CheckViolation())
    with pytest.raises(IntegrityError):
        retried(work)
    assert len(tried) == 1
