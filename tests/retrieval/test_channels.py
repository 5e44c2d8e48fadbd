"""The graph and the pinned channel: what they return, what they cost, and that they leave the others alone."""

from dataclasses import replace

import pytest
from django.db import connection

from apps.core import clock
from apps.core.db.sessions import identity_of, principal_session
from apps.graph.entities import entity_key
from apps.graph.models import Entity, PageEdge
from apps.graph.services import PassageItem
from apps.retrieval.candidates import generate, linked, run, standing
from apps.retrieval.candidates.names import names_in
from apps.retrieval.policy import ScoringPolicy, unstored
from apps.retrieval.schemas import Filters, RetrievalRequest
from tests.support.factories import make_principal, make_world
from tests.support.library import CHAIN, REPO, wiki
from tests.support.memory import NO_VECTOR, ask, give_vectors, question, store

pytestmark = pytest.mark.django_db


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def me(world):
    return world.principal


def channel(answer, name):
    return next(report for report in answer.channels if report.name == name)


def by_path(answer):
    return {row.path.removeprefix("wiki/").removesuffix(".md"): row for row in answer.rows if row.path}


def change(principal, node_id, **values):
    columns = ", ".join(f"{name} = %s" for name in values)
    with principal_session(principal), connection.cursor() as cursor:
        cursor.execute(f"UPDATE graph_node SET {columns} WHERE id = %s", [*values.values(), node_id])


def pin(principal, *node_ids):
    for node_id in node_ids:
        change(principal, node_id, pinned=True)


def about(principal, node_id, *names):
    with principal_session(principal):
        for name in names:
            Entity.objects.create(
                principal_id=principal.principal_id, node_id=node_id, entity_key=entity_key(name), name=name
            )


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Express.js", "express"),
        ("Express", "express"),
        ("Vue 3", "vue"),
        ("Python v2.1", "python"),
        ("Myria Labs", "myrialabs"),
        ("MyriaLabs", "myrialabs"),
        ("Docker Compose", "dockercompose"),
        ("Café", "cafe"),
        ("Cafe\u0301", "cafe"),
        ("東京", "東京"),
        ("js", "js"),
        ("djs", "djs"),
        ("x", None),
        ("?!", None),
        ("n" * 121, None),
    ],
)
def test_keys_of_entities(name, key) -> None:
    assert entity_key(name) == key


def test_names_in_a_query_are_runs_of_its_words_and_bounded() -> None:
    found = names_in("Who runs Myria Labs, (beta-page)?")
    assert {"myrialabs", "runs", "runsmyrialabs", "betapage"} <= set(found.keys)
    assert {"beta-page", "Myria", "myria"} <= set(found.slugs)
    assert len(names_in(" ".join(f"word{n}x" for n in range(400))).keys) <= 3 * 64
    assert names_in("?! ... ''") == names_in("")


# What the graph returns.


def test_pages_within_two_mentions_of_a_hit_enter_with_the_feature_of_their_distance(me) -> None:
    store(me, *CHAIN, wiki("delta-page", "Not mentioned."))
    answer = ask(me, "rollback of billing")
    rows = by_path(answer)
    assert set(rows) == {"alpha-page", "beta-page", "gamma-page"}
    assert [rows[name].features.graph for name in ("alpha-page", "beta-page", "gamma-page")] == [
        0.0,
        0.7,
        0.4,
    ]
    assert [rows[name].raw.hops for name in ("alpha-page", "beta-page", "gamma-page")] == [None, 1, 2]
    assert [rows[name].raw.graph_rank for name in ("beta-page", "gamma-page")] == [1, 2]
    report = channel(answer, "graph")
    assert (report.status, report.count) == ("ok", 2)
    assert report.milliseconds > 0


def test_a_page_that_the_query_names_is_direct_and_so_is_a_claim_about_an_entity(me) -> None:
    ids = store(me, *CHAIN, PassageItem(identity="labs", text="They moved to another town."))
    about(me, ids[3], "Myria Labs")
    named = by_path(ask(me, "what does beta-page say"))
    assert named["beta-page"].features.graph == 1.0
    assert named["alpha-page"].features.graph == named["gamma-page"].features.graph == 0.7
    (row,) = [row for row in ask(me, "where is MyriaLabs").rows if row.node_id == ids[3]]
    assert (row.features.graph, row.raw.hops, row.path_score) == (1.0, 0, 1)


def test_hits_that_mention_each_other_support_each_other(me) -> None:
    store(
        me,
        wiki("alpha-page", "Billing, see beta-page."),
        wiki("beta-page", "Billing."),
        wiki("x-page", "Billing."),
    )
    rows = by_path(ask(me, "billing"))
    assert {name: row.features.graph for name, row in rows.items()} == {
        "alpha-page": 0.7,
        "beta-page": 0.7,
        "x-page": 0.0,
    }
    assert rows["beta-page"].path_score == 2
    assert rows["x-page"].path_score == 1


def test_edges_are_walked_both_ways_and_of_every_kind(me) -> None:
    store(
        me,
        wiki("alpha-page", "Billing."),
        wiki("beta-page", "After alpha-page."),
        wiki("gamma-page", "Apart."),
    )
    with principal_session(me):
        PageEdge.objects.create(
            workspace_id=me.workspace_id,
            principal_id=me.principal_id,
            repo=REPO,
            src="gamma-page",
            dst="alpha-page",
            kind="causes",
            weight=4.0,
        )
    rows = by_path(ask(me, "billing"))
    assert [rows[name].raw.graph_rank for name in ("gamma-page", "beta-page")] == [1, 2], "the stronger first"


def test_a_long_page_is_one_neighbour_and_its_found_parts_are_near_too(me) -> None:
    parts = [replace(CHAIN[1], part=n, text=f"Part {n}{' of billing' if n == 3 else ''}.") for n in range(5)]
    ids = store(me, CHAIN[0], *parts)
    rows = {row.node_id: row for row in ask(me, "billing", limit=50).rows}
    assert set(rows) == {ids[0], ids[1], ids[4]}
    assert rows[ids[1]].raw.hops == rows[ids[4]].raw.hops == 1


def test_the_walk_is_bounded_at_a_hub_and_the_same_on_every_run(me, monkeypatch) -> None:
    names = [f"near-{n:02d}" for n in range(40)]
    store(me, wiki("alpha-page", "Billing: " + ", ".join(names)), *(wiki(name, "more") for name in names))
    monkeypatch.setattr(linked, "FAN_OUT", 5)
    with clock.frozen(clock.now()):
        answers = [ask(me, "billing", limit=50) for _ in range(3)]
    assert {row.slug for row in answers[0].rows} == {"alpha-page", *names[:5]}
    assert len({tuple(row.node_id for row in answer.rows) for answer in answers}) == 1
    monkeypatch.setattr(linked, "FAN_OUT", 24)
    policy = unstored(ScoringPolicy(candidates_per_channel=10))
    assert channel(ask(me, "billing", policy=policy), "graph").count == 10


def test_filters_and_scopes_fence_what_the_graph_and_a_pin_bring_in(me) -> None:
    store(
        me,
        wiki("alpha-page", "Billing: beta-page, gamma-page.", scope="one"),
        wiki("beta-page", "Steps.", scope="two"),
        wiki("gamma-page", "Steps.", scope="one", state="open"),
    )
    pinned = store(me, PassageItem(identity="p", text="elsewhere", scope="two"))
    pin(me, *pinned)
    assert set(by_path(ask(me, "billing"))) == {"alpha-page", "beta-page", "gamma-page"}
    one = ask(me, "billing", scopes=("one",))
    assert {row.slug for row in one.rows} == {"alpha-page", "gamma-page"}
    assert channel(one, "pinned").count == 0
    assert {row.slug for row in ask(me, "billing", filters=Filters(state="open")).rows} == set(), (
        "nothing that passes is a hit, so nothing is near one"
    )
    assert ask(me, "billing", filters=Filters(kinds=("episodic",))).rows == ()


def test_strangers_links_entities_and_pins_bring_nothing_in(world, me) -> None:
    stranger = make_principal(world.workspace)
    theirs = store(stranger, *CHAIN, PassageItem(identity="x", text="theirs"))
    pin(stranger, theirs[3])
    about(stranger, theirs[3], "Myria Labs")
    store(me, CHAIN[0])
    answer = ask(me, "billing at Myria Labs and beta-page")
    assert set(by_path(answer)) == {"alpha-page"}
    assert channel(answer, "graph").status == channel(answer, "pinned").status == "empty"


def test_shared_links_and_pins_are_everybodys(world, me) -> None:
    shared = identity_of(me.shared_principal_id)
    ids = store(shared, *CHAIN)
    pin(shared, ids[2])
    answer = ask(me, "rollback of billing")
    assert set(by_path(answer)) == {"alpha-page", "beta-page", "gamma-page"}
    assert all(row.shared for row in answer.rows)
    assert channel(answer, "pinned").count == 1


# What stands whatever is asked.


def test_pinned_nodes_and_standing_claims_are_candidates_of_any_question(me) -> None:
    ids = store(me, *[f"memory{n}x" for n in range(7)], "needle")
    claim = {"kind": "episodic", "asserted_by": 2, "durability": 1}
    change(me, ids[0], **claim, subkind="pattern")
    change(me, ids[1], **claim, subkind="decision")
    change(me, ids[2], **claim, subkind="preference")
    pin(me, ids[3])
    change(me, ids[4], **claim | {"asserted_by": 0}, subkind="preference")
    change(me, ids[5], **claim, subkind="preference", confidence=0.2)
    change(me, ids[6], **claim, subkind="observation")
    answer = ask(me, "needle", limit=50)
    ranks = {row.node_id: row.raw.pinned_rank for row in answer.rows}
    assert ranks == {ids[3]: 1, ids[2]: 2, ids[1]: 3, ids[0]: 4, ids[7]: None}
    assert channel(answer, "pinned").count == 4
    assert next(row for row in answer.rows if row.node_id == ids[3]).features.salience == 1.0


def test_what_is_withdrawn_stands_no_more(me) -> None:
    ids = store(me, "one", "two", "needle")
    pin(me, *ids[:2])
    change(me, ids[0], archived_at=clock.now())
    change(me, ids[1], superseded_at=clock.now())
    assert channel(ask(me, "needle"), "pinned").status == "empty"


def test_rows_of_these_channels_move_no_other_rows_score(me) -> None:
    """A pin far from the query must not stretch the scale on which the found rows are measured."""
    ids = store(me, *[f"needle {'straw ' * n}" for n in range(12)], "far away")
    give_vectors(me, {node_id: [1, 0.1 * n] for n, node_id in enumerate(ids[:12])} | {ids[12]: [-1, 0.2]})
    policy = unstored(ScoringPolicy(candidates_per_channel=10))

    def scores():
        answer = ask(me, "needle", embedding=question([1]), policy=policy, limit=50)
        return {row.node_id: row.score for row in answer.rows}

    with clock.frozen(clock.now()):
        before = scores()
        pin(me, ids[12])
        after = scores()
    assert ids[12] not in before
    assert after.pop(ids[12]) > 0
    assert after == before


def test_links_entities_and_pins_are_part_of_the_corpus_that_a_receipt_names(world, me) -> None:
    stranger = make_principal(world.workspace)
    store(stranger, "needle")
    ids = store(me, *CHAIN)
    theirs, seen = ask(stranger, "needle").corpus_digest, [ask(me, "needle").corpus_digest]

    def moved():
        seen.append(ask(me, "needle").corpus_digest)
        return len(set(seen)) == len(seen)

    with principal_session(me):
        edge = PageEdge.objects.create(
            workspace_id=me.workspace_id,
            principal_id=me.principal_id,
            repo=REPO,
            src="gamma-page",
            dst="alpha-page",
            kind="causes",
        )
    assert moved()
    with principal_session(me):
        PageEdge.objects.filter(pk=edge.pk).update(weight=2.0)
    assert moved()
    with principal_session(me):
        PageEdge.objects.filter(pk=edge.pk).delete()
    assert moved()
    about(me, ids[0], "Myria Labs")
    assert moved()
    with principal_session(me):
        Entity.objects.filter(node_id=ids[0]).delete()
    assert moved()
    pin(me, ids[0])
    assert moved()
    assert ask(stranger, "needle").corpus_digest == theirs


# Cost and failure.


def asked(monkeypatch):
    """Round trips of channels, by the number of statements in each."""
    trips = []
    together = run._together
    monkeypatch.setattr(run, "_together", lambda *given: trips.append(len(given[1])) or together(*given))
    return trips


def statements(principal, query="needle", **fields):
    """What a candidate generation sends, in its order."""
    import psycopg

    sent = []
    execute = psycopg.Cursor.execute

    def keep(cursor, sql, values=None, **more):
        sent.append(sql)
        return execute(cursor, sql, values, **more)

    request = RetrievalRequest(query, question([1]), clock.now(), **fields)
    with principal_session(principal), pytest.MonkeyPatch.context() as patched:
        patched.setattr(psycopg.Cursor, "execute", keep)
        generate(request)
    return [sql for sql in sent if "SAVEPOINT" not in sql]


def test_without_links_and_pins_nothing_more_is_asked(me, monkeypatch) -> None:
    ids = store(me, "needle", "other")
    give_vectors(me, {node_id: [1] for node_id in ids})
    trips = asked(monkeypatch)
    sent = statements(me)
    assert trips == [2], "both channels in one round trip, and no other"
    assert len(sent) == 5, "statistics, terms, two channels, attributes"
    assert not any("graph_pageedge" in sql for sql in sent[1:])


def test_a_pin_rides_along_and_links_cost_one_round_trip(me, monkeypatch) -> None:
    ids = store(me, "needle", *CHAIN)
    give_vectors(me, {node_id: [1] for node_id in ids})
    pin(me, ids[0])
    trips = asked(monkeypatch)
    sent = statements(me)
    assert trips == [3, 1]
    assert len(sent) == 7


def test_the_standing_nodes_are_read_by_their_index(me) -> None:
    ids = store(me, *[f"text{n}x" for n in range(300)])
    pin(me, *ids[:3])
    from apps.core.db.cursors import session_cursor
    from apps.core.db.sessions import current_principal
    from apps.retrieval.candidates.filters import restriction

    with principal_session(me):
        request = RetrievalRequest("x", NO_VECTOR, clock.now())
        sql, values = standing.statement(restriction(request, current_principal()), 100)
        cursor = session_cursor().execute("EXPLAIN " + sql, values)
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "graph_node_standing" in plan, plan


def broken(*given):
    return "SELECT 1/0, 0, 0", {}


@pytest.mark.parametrize("failing", [("linked",), ("standing",), ("linked", "standing")], ids="+".join)
def test_failing_channels_leave_the_others_rows_in_place_and_order(me, monkeypatch, failing) -> None:
    ids = store(me, *CHAIN, *[f"billing note{n}x" for n in range(5)], "pinned words")
    give_vectors(me, {node_id: [1, 0.1 * n] for n, node_id in enumerate(ids)})
    pin(me, ids[-1])
    policy = unstored(ScoringPolicy(candidates_per_channel=10))
    whole = ask(me, "billing", embedding=question([1]), limit=50, policy=policy)
    assert not whole.partial
    for module in failing:
        monkeypatch.setattr({"linked": linked, "standing": standing}[module], "statement", broken)
    answer = ask(me, "billing", embedding=question([1]), limit=50, policy=policy)
    names = {"linked": "graph", "standing": "pinned"}
    for module, name in names.items():
        report = channel(answer, name)
        assert report.status == ("failed" if module in failing else "ok")
        assert report.error == ("database_22012" if module in failing else None)
    assert channel(answer, "lexical").status == channel(answer, "semantic").status == "ok"
    assert answer.partial
    found = {row.node_id: row for row in whole.rows if row.raw.lexical_rank or row.raw.semantic_rank}
    kept = [row for row in answer.rows if row.node_id in found]
    assert {row.node_id for row in kept} == set(found)
    for row in kept:
        assert (row.features.semantic, row.features.lexical) == (
            found[row.node_id].features.semantic,
            found[row.node_id].features.lexical,
        )
    alone = [row.node_id for row in whole.rows if row.node_id in found and row.raw.hops is None]
    assert [row.node_id for row in kept if row.node_id in set(alone)] == alone


def test_three_failing_channels_leave_the_fourths_rows(me, monkeypatch) -> None:
    from apps.retrieval.candidates import lexical, semantic

    ids = store(me, *CHAIN, "pinned words")
    give_vectors(me, {node_id: [1] for node_id in ids})
    pin(me, ids[-1])
    for module in (lexical, semantic, linked):
        monkeypatch.setattr(module, "statement", broken)
    answer = ask(me, "beta-page", embedding=question([1]))
    assert [row.node_id for row in answer.rows] == [ids[-1]]
    assert [c.status for c in answer.channels] == ["failed", "failed", "failed", "ok"]


# Both formulas.


def test_rank_fusion_adds_every_channel_under_its_multiplier(me) -> None:
    ids = store(me, *CHAIN, "pinned words")
    pin(me, ids[3])
    policy = unstored(ScoringPolicy(formula="rank_fusion"))
    rows = {row.node_id: row for row in ask(me, "rollback of billing", policy=policy).rows}
    assert rows[ids[1]].score == round(1 / 61, 10)
    assert rows[ids[2]].score == round(1 / 62, 10)
    assert rows[ids[3]].score == round(1 / 61, 10)
    heavy = {"graph": 4.0, "pinned": 0.25}
    answer = ask(me, "rollback of billing", policy=policy, multipliers=heavy)
    rows = {row.node_id: row for row in answer.rows}
    assert rows[ids[1]].score == round(4 / 61, 10)
    assert rows[ids[3]].score == round(0.25 / 61, 10)
    assert list(answer.weights.applied) == ["lexical", "semantic", "graph", "pinned"]
    assert answer.weights.base == dict.fromkeys(answer.weights.base, 1.0)
