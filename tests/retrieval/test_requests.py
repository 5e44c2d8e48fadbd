"""What a request may ask: standing, validity, sources, other scopes. What is left out has a reason and a count."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from apps.core import clock
from apps.core.db.sessions import principal_session
from apps.graph.services import PassageItem
from apps.retrieval.candidates import lexical
from apps.retrieval.policy import ScoringPolicy, SessionInheritance, unstored
from apps.retrieval.schemas import Filters
from tests.support.factories import make_principal, make_world
from tests.support.memory import ask, give_vectors, question, store

pytestmark = pytest.mark.django_db

AT = datetime(2026, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def me():
    return make_world().principal


def change(principal, node_id, **values):
    columns = ", ".join(f"{name} = %s" for name in values)
    with principal_session(principal), connection.cursor() as cursor:
        cursor.execute(f"UPDATE graph_node SET {columns} WHERE id = %s", [*values.values(), node_id])


def ids_of(answer):
    return {row.node_id for row in answer.rows}


# Standing.


@pytest.mark.parametrize(
    ("validity", "holds"),
    [
        ({}, False),
        ({"valid_from": AT - DAY}, True),
        ({"valid_from": AT}, True),
        ({"valid_from": AT + DAY}, False),
        ({"valid_to": AT + DAY}, True),
        ({"valid_to": AT}, False),
        ({"valid_from": AT - DAY, "valid_to": AT + DAY}, True),
        ({"valid_from": AT - 2 * DAY, "valid_to": AT - DAY}, False),
    ],
    ids=str,
)
def test_what_is_conditional_answers_while_its_condition_holds(me, validity, holds) -> None:
    (node,) = store(me, "needle")
    change(me, node, epistemic="conditional", **validity)
    with clock.frozen(AT):
        answer = ask(me, "needle")
        explicit = ask(me, "needle", epistemic_mode="explicit")
    assert ids_of(answer) == ({node} if holds else set())
    assert answer.excluded == ({} if holds else {"epistemic_conditional": 1})
    assert [row.epistemic for row in explicit.rows] == ["conditional"]


def test_what_is_withdrawn_is_counted_and_shown_for_what_it_is_when_asked_for(me) -> None:
    ids = store(me, "needle one", "needle two", "needle three")
    change(me, ids[0], archived_at=clock.now())
    change(me, ids[1], superseded_at=clock.now())
    answer = ask(me, "needle")
    assert ids_of(answer) == {ids[2]}
    assert answer.excluded == {"archived": 1, "superseded": 1}
    explicit = ask(me, "needle", epistemic_mode="explicit")
    assert {row.node_id: row.withdrawn for row in explicit.rows} == {
        ids[0]: "archived",
        ids[1]: "superseded",
        ids[2]: None,
    }
    assert explicit.excluded == {}


def test_neighbours_are_held_to_the_same_standing(me) -> None:
    turns = [
        PassageItem(identity=f"t{n}", text=t, session="s", position=n)
        for n, t in enumerate(("needle", "next"))
    ]
    ids = store(me, *turns)
    assert ids_of(ask(me, "needle")) == set(ids)
    change(me, ids[1], epistemic="hypothetical")
    assert ids_of(ask(me, "needle")) == {ids[0]}


# Bounds of time.


def test_the_event_time_and_the_validity_are_two_windows(me) -> None:
    items = [PassageItem(identity=str(n), text="needle", event_at=AT + n * DAY) for n in range(4)]
    ids = store(me, *items)
    change(me, ids[0], valid_from=AT, valid_to=AT + DAY)
    change(me, ids[1], valid_from=AT + 5 * DAY)
    change(me, ids[2], valid_to=AT + 2 * DAY)

    def found(**filters):
        return ids_of(ask(me, "needle", filters=Filters(**filters)))

    assert found(since=AT + DAY, until=AT + 3 * DAY) == {ids[1], ids[2]}, "half-open"
    assert found(valid_since=AT, valid_until=AT + DAY) == {ids[0], ids[2], ids[3]}
    assert found(valid_since=AT + DAY) == {ids[1], ids[2], ids[3]}, "what ends at its beginning is over"
    assert found(valid_until=AT + 5 * DAY) == {ids[0], ids[2], ids[3]}
    assert found(since=AT + 2 * DAY, valid_since=AT + 3 * DAY) == {ids[3]}


def test_what_was_stored_later_than_known_at_is_left_out(me) -> None:
    ids = store(me, "needle", "needle too")
    change(me, ids[1], created_at=AT + DAY)
    change(me, ids[0], created_at=AT)
    assert ids_of(ask(me, "needle", filters=Filters(known_at=AT))) == {ids[0]}


# Cuts.


def test_cuts_count_entities_and_name_their_reason(me) -> None:
    parts = [PassageItem(identity="doc", text=f"needle {'straw ' * n}", part=n) for n in range(4)]
    store(me, *parts, PassageItem(identity="other", text="needle " + "straw " * 9))
    answer = ask(me, "needle", max_per_source=1, min_score=0.3, limit=50)
    assert answer.excluded == {"max_per_source": 3, "below_min_score": 1}
    assert answer.scored == answer.omitted + len(answer.rows) == 5
    assert ask(me, "needle", min_score=0.3, limit=50).excluded == {"below_min_score": 1}


def test_a_least_score_is_met_by_equal_ones(me) -> None:
    store(me, "needle")
    with clock.frozen(clock.now()):
        score = ask(me, "needle").rows[0].score
        assert len(ask(me, "needle", min_score=score).rows) == 1
        assert len(ask(me, "needle", min_score=score + 1e-10).rows) == 0


# Hints of other scopes.


def scoped(*pairs):
    return [PassageItem(identity=f"{n}", text=text, scope=scope) for n, (scope, text) in enumerate(pairs)]


def test_hints_come_from_scopes_outside_the_request_and_stand_apart(me) -> None:
    outside = [("two", f"needle {'straw ' * n}") for n in range(7)]
    ids = store(me, *scoped(("one", "needle one"), ("one", "needle and more"), *outside))
    with clock.frozen(clock.now()):
        alone = ask(me, "needle", scopes=("one",))
        answer = ask(me, "needle", scopes=("one",), include_cross_scope=True)
    assert answer.rows == alone.rows
    assert ids_of(answer) == set(ids[:2])
    assert len(answer.hints) == 5
    assert [row.rank for row in answer.hints] == [1, 2, 3, 4, 5]
    assert {row.scope for row in answer.hints} == {"two"}
    assert {row.node_id for row in answer.hints} <= set(ids[2:])
    assert alone.hints == ()


def test_hints_are_scored_by_the_same_weights_on_the_same_scale(me) -> None:
    texts = ["needle needle needle", "needle straw", "needle " + "straw " * 20]
    ids = store(me, *scoped(*(("one", text) for text in texts), *(("two", text) for text in texts)))
    give_vectors(me, {node_id: [1, 0.3 * (n % 3)] for n, node_id in enumerate(ids)})
    for multipliers in (None, {"lexical": 4.0, "semantic": 0.25}):
        with clock.frozen(clock.now()):
            answer = ask(
                me,
                "needle",
                embedding=question([1]),
                scopes=("one",),
                include_cross_scope=True,
                multipliers=multipliers,
            )
        # Twins score alike, up to the moment at which they were stored.
        twins = dict(zip(ids[3:], ids[:3], strict=True))
        scores = {row.node_id: row.score for row in answer.rows}
        assert len(answer.hints) == 3
        for row in answer.hints:
            assert row.score == pytest.approx(scores[twins[row.node_id]], abs=1e-6)


def test_a_hint_beyond_the_scale_of_the_rows_is_cut_to_it(me) -> None:
    store(
        me,
        *scoped(
            ("one", "straw needle straw straw"), ("one", "needle " + "straw " * 30), ("two", "needle needle")
        ),
    )
    answer = ask(me, "needle", scopes=("one",), include_cross_scope=True)
    assert answer.hints[0].raw.bm25 > answer.rows[0].raw.bm25
    assert answer.hints[0].features.lexical == 1.0


def test_filters_hold_for_hints_and_all_scopes_leave_none(me) -> None:
    items = scoped(("one", "needle"), ("two", "needle"))
    store(me, *items, PassageItem(identity="x", text="needle", scope="two", state="open"))
    filtered = ask(me, "needle", scopes=("one",), include_cross_scope=True, filters=Filters(state="open"))
    assert (filtered.rows, [row.state for row in filtered.hints]) == ((), ["open"])
    assert ask(me, "needle", include_cross_scope=True).hints == ()
    assert ask(me, "needle", scopes=("one", "two"), include_cross_scope=True).hints == ()


def test_strangers_scopes_give_no_hint(me) -> None:
    stranger = make_principal(make_world().workspace)
    store(stranger, *scoped(("two", "needle")))
    store(me, *scoped(("one", "needle")))
    assert ask(me, "needle", scopes=("one",), include_cross_scope=True).hints == ()


def test_hints_that_could_not_be_looked_for_are_said_to_be_missing(me, monkeypatch) -> None:
    store(me, *scoped(("one", "needle"), ("two", "needle")))
    statement = lexical.statement

    def broken_outside(plan, restriction, depth):
        return (
            ("SELECT 1/0", {}) if "f_outside" in restriction.values else statement(plan, restriction, depth)
        )

    monkeypatch.setattr(lexical, "statement", broken_outside)
    answer = ask(me, "needle", scopes=("one",), include_cross_scope=True)
    assert len(answer.rows) == 1
    assert (answer.hints, answer.errors) == ((), {"cross_scope": "channel_failed"})
    assert not answer.partial


# Parts of a document, by the policy's leave.


def test_parts_of_one_document_inherit_only_where_the_policy_says_so(me) -> None:
    parts = [PassageItem(identity="doc", text="needle" if n == 2 else f"part {n}x", part=n) for n in range(6)]
    ids = store(me, *parts, PassageItem(identity="else", text="apart", part=2))
    assert ids_of(ask(me, "needle")) == {ids[2]}
    policy = unstored(ScoringPolicy(session=SessionInheritance(documents=True)))
    answer = ask(me, "needle", policy=policy)
    assert ids_of(answer) == set(ids[:5])
    assert [row.adjustments[-1].source for row in answer.rows[1:]] == [ids[2]] * 4
    apart = unstored(ScoringPolicy(session=SessionInheritance(enabled=False, documents=True)))
    assert ids_of(ask(me, "needle", policy=apart)) == set(ids[:5])


# Queries of every kind.


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("日本語の手順", "日本語で書かれた手順書"),
        ("как откатить релиз", "Инструкция: откатить релиз за пять минут"),
        ("where does getUserName() live", "class A { fun getUserName() = name } // src/a.kt"),
        ("ошибка в parse_config 設定", "parse_config падает: 設定ファイルがない"),
    ],
    ids=["japanese", "russian", "code", "mixed"],
)
def test_scripts_and_mixed_texts_are_found_and_scored(me, query, text) -> None:
    ids = store(me, text, "something else entirely")
    give_vectors(me, {node_id: [1, n] for n, node_id in enumerate(ids)})
    answer = ask(me, query, embedding=question([1]))
    assert answer.rows[0].node_id == ids[0]
    assert answer.rows[0].raw.lexical_rank == 1
    assert not answer.partial


@pytest.mark.parametrize("query", ["?!", "... --- ...", "«»", "🙂", "%s {} \\"])
def test_punctuation_alone_has_no_words_and_answers(me, query) -> None:
    ids = store(me, "one", "two")
    give_vectors(me, {node_id: [1, n] for n, node_id in enumerate(ids)})
    answer = ask(me, query)
    assert (answer.rows, answer.query_groups, answer.partial) == ((), answer.query_groups, False)
    by_meaning = ask(me, query, embedding=question([1]))
    assert [row.node_id for row in by_meaning.rows] == ids
    assert all(row.features.lexical == 0 for row in by_meaning.rows), "no lexical hit: absent is 0"


def test_min_max_with_one_candidate_and_with_equal_ones(me) -> None:
    ids = store(me, "needle", "other", "other again")
    give_vectors(me, {node_id: [1] for node_id in ids})
    (one,) = ask(me, "needle").rows
    assert (one.features.lexical, one.features.semantic) == (1.0, 0.0)
    equal = ask(me, "", embedding=question([1]))
    assert {row.features.semantic for row in equal.rows} == {1.0}
