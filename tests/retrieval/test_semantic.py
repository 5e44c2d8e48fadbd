"""The semantic channel, and how the two stand beside each other."""

import numpy as np
import pytest
from django.db import connection

from apps.core import clock
from apps.core.db.cursors import session_cursor
from apps.core.db.sessions import principal_session
from apps.graph.embedders import QueryEmbedding
from apps.graph.embedders.active import active
from apps.graph.services import PassageItem
from apps.retrieval.candidates import generate, run, semantic
from apps.retrieval.candidates.statistics import CorpusRow, Statistics
from apps.retrieval.schemas import Filters, RetrievalRequest
from tests.support.factories import make_principal, make_world
from tests.support.memory import ask, give_vectors, question, store

pytestmark = pytest.mark.django_db


@pytest.fixture
def world():
    return make_world()


def report(answer, name):
    return next(channel for channel in answer.channels if channel.name == name)


def test_cosine_orders_and_is_exact(world) -> None:
    ids = store(world.principal, "one", "two", "three")
    give_vectors(world.principal, {ids[0]: [1, 0], ids[1]: [1, 1], ids[2]: [0, 1]})
    answer = ask(world.principal, "", embedding=question([1, 0]))
    assert [row.node_id for row in answer.rows] == ids
    assert [row.raw.cosine for row in answer.rows] == pytest.approx([1, 0.5**0.5, 0], abs=1e-3)
    assert report(answer, "semantic").method == "exact"


def test_a_row_that_only_the_words_found_has_its_cosine_too(world) -> None:
    texts = [f"filler{n}x" for n in range(120)]
    ids = store(world.principal, *texts, "needle")
    vectors = {node_id: [1, 0.001 * n] for n, node_id in enumerate(ids[:-1])} | {ids[-1]: [0, 1]}
    give_vectors(world.principal, vectors)
    answer = ask(world.principal, "needle", embedding=question([1, 0]), limit=50)
    row = next(row for row in answer.rows if row.node_id == ids[-1])
    assert row.raw.semantic_rank is None
    assert row.raw.cosine == pytest.approx(0, abs=1e-3)
    assert row.raw.lexical_rank == 1


def test_without_vectors_the_channel_is_empty_and_has_not_failed(world) -> None:
    store(world.principal, "needle")
    for embedding in (question([1]), QueryEmbedding("failed", error="embedder_timeout")):
        answer = ask(world.principal, "needle", embedding=embedding)
        assert report(answer, "semantic").status == "empty"
        assert report(answer, "semantic").coverage == 0
        assert not answer.partial
        assert len(answer.rows) == 1


def test_a_failing_embedder_makes_the_answer_partial_and_says_so(world) -> None:
    ids = store(world.principal, "needle", "other")
    give_vectors(world.principal, {ids[0]: [1]})
    answer = ask(world.principal, "needle", embedding=QueryEmbedding("failed", error="embedder_timeout"))
    assert answer.partial
    assert report(answer, "semantic").error == "embedder_timeout"
    assert report(answer, "semantic").coverage == 0.5
    assert [row.node_id for row in answer.rows] == ids[:1]


def broken(sql="SELECT 1/0, 0, 0"):
    return lambda *args, **kwargs: (sql, {})


@pytest.mark.parametrize("failing", ["lexical", "semantic"])
def test_a_failing_channel_leaves_the_others_rows_in_place(world, monkeypatch, failing) -> None:
    from apps.retrieval.candidates import lexical

    ids = store(world.principal, "needle one", "needle two two", "else")
    give_vectors(world.principal, {node_id: [1, n] for n, node_id in enumerate(ids)})
    monkeypatch.setattr({"lexical": lexical, "semantic": semantic}[failing], "statement", broken())
    answer = ask(world.principal, "needle", embedding=question([1, 0]))
    assert report(answer, failing).status == "failed"
    assert report(answer, failing).error == "database_22012"
    other = "semantic" if failing == "lexical" else "lexical"
    assert report(answer, other).status == "ok"
    expected = ids[:2] if failing == "semantic" else ids
    assert [row.node_id for row in answer.rows] == expected
    assert answer.partial


def test_two_failing_channels_leave_a_usable_session(world, monkeypatch) -> None:
    from apps.retrieval.candidates import lexical

    ids = store(world.principal, "needle")
    give_vectors(world.principal, {ids[0]: [1]})
    monkeypatch.setattr(lexical, "statement", broken())
    monkeypatch.setattr(semantic, "statement", broken())
    request = RetrievalRequest("needle", question([1]), clock.now())
    with principal_session(world.principal), connection.cursor() as cursor:
        found = generate(request)
        assert [channel.status for channel in found.channels] == ["failed", "failed", "empty", "empty"]
        cursor.execute("SELECT count(*) FROM graph_node")
        assert cursor.fetchone()[0] == 1


def test_both_channels_answer_in_one_round_trip(world, monkeypatch) -> None:
    ids = store(world.principal, "needle")
    give_vectors(world.principal, {ids[0]: [1]})
    trips = []
    together = run._together
    monkeypatch.setattr(run, "_together", lambda *given: trips.append(len(given[1])) or together(*given))
    monkeypatch.setattr(run, "_alone", lambda *given: pytest.fail("asked apart"))
    ask(world.principal, "needle", embedding=question([1]))
    assert trips == [2]


def statistics(vectors, index):
    from uuid import uuid4

    return Statistics((CorpusRow(uuid4(), 3, vectors, 1, vectors, {}, 0, 0),), index)


@pytest.mark.parametrize(
    ("vectors", "index", "method"),
    [
        (20_000, 30_000, "exact"),
        (20_001, 30_000, "hnsw"),
        (50_000, 6_000_000, "exact"),
        (70_000, 6_000_000, "hnsw"),
    ],
)
def test_the_method_goes_by_the_owners_count_and_share(vectors, index, method) -> None:
    assert semantic.choose(statistics(vectors, index)).method == method


def test_the_walk_agrees_with_the_exact_scan(world) -> None:
    rng = np.random.default_rng(5)
    space = active()
    count = 600
    ids = store(world.principal, *[f"text{n}x" for n in range(count)])
    give_vectors(world.principal, dict(zip(ids, rng.normal(size=(count, space.dims)), strict=True)))
    other = make_principal(world.workspace)
    theirs = store(other, *[f"text{n}x" for n in range(200)])
    give_vectors(other, dict(zip(theirs, rng.normal(size=(200, space.dims)), strict=True)))
    shares = []
    with principal_session(world.principal):
        for _ in range(10):
            request = RetrievalRequest("", question(rng.normal(size=space.dims)), clock.now())
            exact = {c.node.id for c in generate(request).pool}
            walked = generate(request, exact_rows=0)
            assert walked.channels[1].method == "hnsw"
            shares.append(len(exact & {c.node.id for c in walked.pool}) / len(exact))
    assert np.mean(shares) >= 0.95


def test_the_walk_uses_the_index_and_the_exact_scan_does_not(world) -> None:
    from apps.core.db.sessions import current_principal
    from apps.retrieval.candidates.filters import restriction

    request = RetrievalRequest("", question([1]), clock.now())
    with principal_session(world.principal):
        allowed = restriction(request, current_principal())
        cursor = session_cursor()
        plans = {}
        for method in ("exact", "hnsw"):
            sql, values = semantic.statement(method, request.embedding, allowed, 100)
            # A table of a few rows is cheaper to read whole; the question is what can be used at all.
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
            cursor.execute("EXPLAIN " + sql, values)
            plans[method] = "\n".join(line for (line,) in cursor.fetchall())
    assert "graph_vector_hnsw" in plans["hnsw"]
    assert "graph_vector_hnsw" not in plans["exact"]


def test_a_filtered_walk_keeps_the_order_of_the_index_and_looks_rows_up_by_their_key(world) -> None:
    """By nothing but the settings of the channel itself, which end with it."""
    from apps.core.db.sessions import current_principal
    from apps.retrieval.candidates.filters import restriction

    (node,) = store(world.principal, PassageItem(identity="1", text="t1x", repo="acme/app"))
    give_vectors(world.principal, {node: [1, 1]})
    request = RetrievalRequest("", question([1]), clock.now(), filters=Filters(repository="acme/app"))
    with principal_session(world.principal):
        allowed = restriction(request, current_principal())
        channel = semantic.channel("hnsw", request.embedding, allowed, 100)
        cursor = session_cursor()
        cursor.execute("SET LOCAL enable_seqscan = off")  # of a table of a few rows
        for setting in channel.before:
            cursor.execute(setting)
        cursor.execute("EXPLAIN " + channel.statement[0], channel.statement[1])
        plan = "\n".join(line for (line,) in cursor.fetchall())
        assert len(generate(request, exact_rows=0).pool) == 1
        assert cursor.execute("SHOW enable_sort").fetchone() == ("on",)
    for index in ("graph_vector_hnsw", "graph_node_pkey", "graph_passage_pkey"):
        assert f"using {index}" in plan, plan
    assert "Hash" not in plan, plan
    assert "Merge" not in plan, plan


def test_a_starved_walk_falls_back_to_the_exact_scan(world, monkeypatch) -> None:
    ids = store(world.principal, *[PassageItem(identity=str(n), text=f"t{n}x", scope="a") for n in range(20)])
    give_vectors(world.principal, {node_id: [1, n] for n, node_id in enumerate(ids)})
    monkeypatch.setattr(semantic, "_WALK", semantic._WALK.replace("LIMIT %(fetched)s", "LIMIT 3"))
    request = RetrievalRequest("", question([1]), clock.now())
    with principal_session(world.principal):
        found = generate(request, exact_rows=0)
    assert found.channels[1].method == "exact"
    assert len(found.pool) == 20


def test_filters_apply_before_the_cap_in_both_methods(world) -> None:
    items = [
        PassageItem(identity=str(n), text=f"t{n}x", state="kept" if n >= 110 else None) for n in range(120)
    ]
    ids = store(world.principal, *items)
    give_vectors(world.principal, {node_id: [1, 0.01 * n] for n, node_id in enumerate(ids)})
    request = RetrievalRequest("", question([1]), clock.now(), filters=Filters(state="kept"))
    with principal_session(world.principal):
        for exact_rows in (20_000, 0):
            found = generate(request, exact_rows=exact_rows)
            assert {c.node.id for c in found.pool} == set(ids[110:])


def test_strangers_vectors_are_never_near(world) -> None:
    stranger = make_principal(world.workspace)
    (theirs,) = store(stranger, "theirs")
    give_vectors(stranger, {theirs: [1]})
    (mine,) = store(world.principal, "mine")
    give_vectors(world.principal, {mine: [0, 1]})
    answer = ask(world.principal, "", embedding=question([1]))
    assert [row.node_id for row in answer.rows] == [mine]
