"""The graph axis: pages that ranked pages mention, in an order that confirmed uses teach."""

from uuid import UUID

import pytest
from django.db import DatabaseError

from apps.core.db.sessions import principal_session
from apps.core.problems import Problem
from apps.feedback.models import Credit
from apps.feedback.selectors import trace_detail
from apps.graph.services.passages import delete_passages
from apps.retrieval.pages import expand
from apps.traces.models import Use
from tests.feedback.test_outcomes import confirm, reverse
from tests.support.factories import make_principal
from tests.support.graph_axis import expanded, learn
from tests.support.library import CHAIN, REPO, ask, store, thread, wiki

pytestmark = pytest.mark.django_db


def ranked_only(answer):
    return [{name: value for name, value in row.items() if name != "activation"} for row in answer["results"]]


def test_the_graph_axis_finds_what_ranked_pages_mention_and_learns_from_it(me, frozen) -> None:
    store(me, *CHAIN)
    answer = expanded(me)
    assert [row["title"] or row["path"] for row in answer["results"]] == ["wiki/alpha-page.md"]
    assert [(row["slug"], row["hop"]) for row in answer["graph_results"]] == [
        ("beta-page", 1),
        ("gamma-page", 2),
    ]
    path = [(edge["src"], edge["dst"]) for edge in answer["graph_results"][1]["graph_path"]]
    assert path == [("alpha-page", "beta-page"), ("beta-page", "gamma-page")]
    trace, source = UUID(answer["trace_id"]), answer["graph_results"][1]["source_id"]
    with principal_session(me), pytest.raises(Problem) as refused:
        confirm(trace, source)
    assert refused.value.shown_code == "used_source_required"
    receipt = learn(me, answer)
    assert [change["delta"] for change in receipt["changes"]] == [0.25, 0.25]
    again = expanded(me, use_memory=True)
    assert ranked_only(again) == ranked_only(answer)
    assert again["graph_results"][1]["learned_strength"] > 0.49
    with principal_session(me):
        reversal = reverse(trace, receipt["receipt_id"])
        assert len(reversal["changes"]) == 2
        assert Use.objects.get(source_id=source).stage == 3
        assert not Credit.objects.filter(active=True).exists()


def test_the_learned_one_of_many_neighbours_enters_a_short_answer(me) -> None:
    names = [f"near-{number:02d}" for number in range(1, 41)]
    store(
        me,
        wiki("alpha-page", "Rollback of billing: " + ", ".join(names)),
        *(wiki(name, "more") for name in names),
    )
    wide = expanded(me, limit=50)
    position = [row["slug"] for row in wide["graph_results"]].index("near-30")
    learn(me, wide, position)
    plain, learned = expanded(me), expanded(me, use_memory=True)
    assert [row["slug"] for row in plain["graph_results"]] == ["near-01", "near-02"]
    assert [row["slug"] for row in learned["graph_results"]] == ["near-30", "near-01"]
    assert all("score" not in row for row in learned["graph_results"])


def test_a_page_beyond_the_plain_cut_enters_by_strength(me) -> None:
    names = [f"near-{number:02d}" for number in range(1, 41)]
    store(
        me,
        wiki("alpha-page", "Rollback of billing: " + ", ".join(names)),
        *(wiki(name, "the zebra page" if name == "near-39" else "more") for name in names),
    )
    # The 39th is below every cut of the plain order; its edge is walked from its own side.
    backward = ask(me, "zebra", graph_expand=True, limit=1)
    assert [row["slug"] for row in backward["graph_results"]][:1] == ["alpha-page"]
    learn(me, backward, 0)
    plain, learned = (expanded(me, use_memory=flag)["graph_results"] for flag in (False, True))
    assert [row["slug"] for row in plain] == ["near-01", "near-02"]
    assert [row["slug"] for row in learned] == ["near-39", "near-01"]
    assert learned[0]["learned_strength"] > 0.24


def test_nothing_learned_is_the_unlearned_order_and_a_stranger_changes_nothing(world, me) -> None:
    store(me, *CHAIN)
    stranger = make_principal(world.workspace)
    store(stranger, *CHAIN)
    learn(stranger, expanded(stranger))
    plain, with_memory = expanded(me), expanded(me, use_memory=True)
    assert [row["slug"] for row in with_memory["graph_results"]] == [
        row["slug"] for row in plain["graph_results"]
    ]
    assert {row["learned_strength"] for row in with_memory["graph_results"]} == {0.0}


def test_the_ranked_axis_never_changes_with_memory(me, frozen) -> None:
    store(me, *CHAIN, thread(7, "billing rollback again"), thread(8, "one of billing's many long words"))
    first = expanded(me, limit=2)
    learn(me, first)
    plain, with_memory = (expanded(me, limit=2, use_memory=flag, explain=True) for flag in (False, True))
    assert ranked_only(plain) == ranked_only(with_memory)
    assert len(plain["results"]) == 2
    assert all(row["features"] is not None for row in plain["results"])
    assert max(row["learned_strength"] for row in with_memory["graph_results"]) > 0.49


def test_two_equal_paths_to_a_page_are_both_saved_and_credited_once(me) -> None:
    pages = (
        wiki("alpha-page", "Rollback of billing: beta-page and gamma-page."),
        wiki("beta-page", "Then delta-page."),
        wiki("gamma-page", "Then delta-page."),
        wiki("delta-page", "End."),
        thread(7, "billing rollback"),
        thread(8, "one of billing's many long words"),
    )
    store(me, *pages)
    seen = []
    for _ in range(2):
        answer = expanded(me, limit=2)
        assert answer["graph_results"][-1]["slug"] == "delta-page"
        with principal_session(me):
            detail = trace_detail(UUID(answer["trace_id"]), limit=10, cursor=None)
        source = next(
            s for s in detail["sources"] if s["source_id"] == answer["graph_results"][-1]["source_id"]
        )
        seen.append([[edge["dst"] for edge in path] for path in source["paths"]])
    assert seen[0] == seen[1] == [["beta-page", "delta-page"], ["gamma-page", "delta-page"]]
    assert len(learn(me, answer)["changes"]) == 4


def test_walking_against_a_mention_credits_it_as_it_is_stored(me) -> None:
    store(me, wiki("alpha-page", "Rollback of billing."), wiki("beta-page", "After alpha-page."))
    answer = expanded(me)
    receipt = learn(me, answer)
    assert [(c["edge"]["src"], c["edge"]["dst"]) for c in receipt["changes"]] == [("beta-page", "alpha-page")]


def test_the_walk_is_bounded_and_says_so(me, monkeypatch) -> None:
    store(me, *CHAIN)
    monkeypatch.setattr("apps.retrieval.pages.MAX_EDGES", 1)
    answer = expanded(me)
    assert answer["graph_truncated"] is True
    assert [row["slug"] for row in answer["graph_results"]] == ["beta-page"]
    with principal_session(me):
        walked = expand([(REPO, "gamma-page")], hops=2)
    assert walked.truncated


def test_indexing_edges_again_keeps_what_was_learned(me) -> None:
    nodes = store(me, *CHAIN)
    learn(me, expanded(me))
    with principal_session(me):
        delete_passages(node_ids=[UUID(node) for node in nodes])
    store(me, *CHAIN)
    assert expanded(me, use_memory=True)["graph_results"][1]["learned_strength"] > 0.49


def test_failing_strengths_or_walks_empty_the_graph_axis_and_leave_no_trace(me, monkeypatch) -> None:
    store(me, *CHAIN)

    def fails(*args, **kwargs):
        raise DatabaseError

    for name, more in (("strengths", {"use_memory": True}), ("expand", {})):
        with monkeypatch.context() as patched:
            patched.setattr(f"apps.search.found.{name}", fails)
            answer = expanded(me, **more)
        assert len(answer["results"]) == 1
        assert answer["graph_results"] == []
        assert answer["memory_error"] == "retrieval_incomplete"
