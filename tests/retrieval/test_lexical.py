"""The lexical channel: exact BM25 over what the caller may see."""

import math

import pytest
from django.db import connection

from apps.core.db.cursors import session_cursor
from apps.core.db.sessions import current_principal, identity_of, principal_session
from apps.graph.analyser import ANALYSER
from apps.graph.services import PassageItem, delete_passages
from apps.retrieval.candidates import generate, lexicon, statistics
from apps.retrieval.candidates.filters import restriction
from apps.retrieval.schemas import Filters, RetrievalRequest
from tests.support.factories import make_principal, make_world
from tests.support.memory import NO_VECTOR, ask, store

pytestmark = pytest.mark.django_db

FIVE = ["apple banana", "apple apple cherry", "banana cherry damson elder", "fig", "apple fig fig fig grape"]


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def shared(world):
    return identity_of(world.principal.shared_principal_id)


def simple(*texts):
    return [PassageItem(identity=str(n), text=text, language="simple") for n, text in enumerate(texts)]


def request(query, **filters):
    from apps.core import clock

    return RetrievalRequest(query, NO_VECTOR, clock.now(), filters=Filters(**filters))


def scores(principal, query, **filters):
    """BM25 by node id, in ranked order."""
    with principal_session(principal):
        found = generate(request(query, **filters))
    ranked = sorted(found.pool, key=lambda c: c.lexical_rank)
    return {c.node.id: c.bm25 for c in ranked}


def bm25(tf, length, df, n, mean, k1=1.2, b=0.75):
    idf = math.log(1 + (n - df + 0.5) / (df + 0.5))
    return idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / mean))


def test_bm25_of_five_documents_by_hand(world) -> None:
    ids = store(world.principal, *simple(*FIVE))
    mean = (2 + 3 + 4 + 1 + 5) / 5
    expected = {
        ids[0]: bm25(1, 2, 3, 5, mean),
        ids[1]: bm25(2, 3, 3, 5, mean),
        ids[4]: bm25(1, 5, 3, 5, mean) + bm25(3, 5, 2, 5, mean),
        ids[3]: bm25(1, 1, 2, 5, mean),
    }
    found = scores(world.principal, "apple fig")
    assert set(found) == set(expected)
    for node_id, value in expected.items():
        assert found[node_id] == pytest.approx(value, abs=1e-9)
    assert next(iter(found)) == ids[4], "the row that matches every group comes first"


def test_rows_with_every_group_come_before_better_rows_with_some(world) -> None:
    filler = ["padding words here"] * 6
    ids = store(world.principal, *simple("rare rare rare", "rare common " + "long " * 60, *filler, "common"))
    found = list(scores(world.principal, "rare common"))
    assert found[0] == ids[1]


def test_own_and_shared_corpora_add_up(world, shared) -> None:
    own = store(world.principal, *simple(*FIVE[:3]))
    common = store(shared, *simple(*FIVE[3:]))
    mean = 15 / 5
    found = scores(world.principal, "fig apple")
    assert found[common[0]] == pytest.approx(bm25(1, 1, 2, 5, mean), abs=1e-9)
    assert found[own[1]] == pytest.approx(bm25(2, 3, 3, 5, mean), abs=1e-9)
    alone = ask(world.principal, "fig apple", corpus="shared")
    assert {row.node_id for row in alone.rows} == set(common)
    assert all(row.shared for row in alone.rows)


def test_statistics_are_the_owners_alone(world) -> None:
    before = scores(world.principal, "apple") or store(world.principal, *simple(*FIVE))
    before = scores(world.principal, "apple")
    store(make_principal(world.workspace), *simple(*(["apple"] * 50)))
    assert scores(world.principal, "apple") == before


def test_the_same_statistics_after_a_detour(world) -> None:
    store(world.principal, *simple(*FIVE))
    before = scores(world.principal, "apple fig banana")
    extra = store(world.principal, PassageItem(identity="x", text="apple kiwi", language="simple"))
    assert scores(world.principal, "apple fig banana") != before
    with principal_session(world.principal):
        delete_passages(node_ids=extra)
    assert scores(world.principal, "apple fig banana") == before


def test_insertion_order_does_not_matter(world) -> None:
    other = make_principal(world.workspace)
    items = simple(*FIVE)
    store(world.principal, *items)
    store(other, *reversed(items))
    for query in ("apple fig", "banana", "cherry damson grape"):
        rows = [ask(principal, query).rows for principal in (world.principal, other)]
        one, two = ([(row.provenance.identity, row.raw.bm25) for row in found] for found in rows)
        assert one == two


def test_identifiers_and_parts_of_paths_hit(world) -> None:
    ids = store(
        world.principal,
        PassageItem(identity="a", text="The handler getUserName lives in src/app/views.py."),
        PassageItem(identity="b", text="Names of users are shown in the view."),
    )
    for query in ("getUserName", "getusername", "app/views.py", "src/app/views.py", "views.py"):
        assert next(iter(scores(world.principal, query))) == ids[0], query
    assert ids[0] in scores(world.principal, "user_name")


def test_japanese_thai_and_stems_hit(world) -> None:
    ids = store(
        world.principal, "東京タワーに行きました", "ภาษาไทยสวยงาม", "She was running experiments with it"
    )
    assert list(scores(world.principal, "タワー")) == [ids[0]]
    assert list(scores(world.principal, "ภาษา")) == [ids[1]]
    assert list(scores(world.principal, "experiment runs")) == [ids[2]]


ENGLISH = [
    "rollback",
    "how do I undo the rollback",
    "I changed the billing service last week and now every deployment fails; which page says how the rollback "
    "of a half finished migration is done without losing invoices",
]
JAPANESE = [
    "請求",
    "請求の取り消し方法は",
    "先週デプロイした後から請求の画面が開かなくなりました。元に戻す手順はどこに書いてありますか",
]


@pytest.mark.parametrize("query", [*ENGLISH, *JAPANESE])
def test_short_and_long_questions_keep_their_hits(world, query) -> None:
    english, japanese, _ = store(
        world.principal,
        "The rollback of a migration",
        "請求のロールバック手順",
        "zzz",
    )
    assert next(iter(scores(world.principal, query))) == (japanese if query in JAPANESE else english)


@pytest.mark.parametrize("query", ["qqxx vvww", "漢字弁別"])
def test_without_a_shared_token_there_is_no_hit(world, query) -> None:
    store(world.principal, "The rollback of a migration", "請求の手順")
    assert scores(world.principal, query) == {}


def test_rows_share_a_token_come_once_and_keep_the_limit(world) -> None:
    both = store(world.principal, *[f"apple fig note{n}x" for n in range(3)])
    some = store(world.principal, *[PassageItem(identity=f"s{n}", text=f"apple word{n}x") for n in range(9)])
    none = store(world.principal, PassageItem(identity="n", text="nothing of it"))
    found = [row.node_id for row in ask(world.principal, "apple fig apple", limit=50).rows]
    assert set(found[:3]) == set(both)
    assert sorted(found) == sorted([*both, *some])
    assert none[0] not in found
    assert len(ask(world.principal, "apple fig", limit=5).rows) == 5


def test_a_rewritten_row_is_found_by_its_new_words_only_and_others_stay(world) -> None:
    store(world.principal, "apple fig", PassageItem(identity="j", text="請求の手順"))
    (new, japanese) = store(world.principal, "banana fig", PassageItem(identity="j", text="請求の手順"))
    assert scores(world.principal, "apple") == {}
    assert list(scores(world.principal, "banana")) == [new]
    assert list(scores(world.principal, "手順")) == [japanese]
    with principal_session(world.principal):
        delete_passages(node_ids=[new])
    assert scores(world.principal, "banana fig") == {}
    assert list(scores(world.principal, "手順")) == [japanese]


@pytest.mark.parametrize(
    "query", ["", "  ", "?!", "the of and", "'; DROP TABLE x; --", "a & b | !c <-> d", "%_\\"]
)
def test_odd_queries_answer(world, query) -> None:
    store(world.principal, "The cat of the house and the dog")
    answer = ask(world.principal, query)
    assert not answer.partial


def test_four_hundred_words_use_the_rarest_groups_and_hit(world) -> None:
    store(world.principal, *[f"word{n}x filler{n % 7}y" for n in range(300)])
    query = " ".join(f"filler{n % 7}y word{n}x" for n in range(200))
    answer = ask(world.principal, query, limit=50)
    assert answer.groups_used == 32
    assert answer.rows


def test_an_unknown_word_stands_for_the_longer_ones_it_begins(world) -> None:
    ids = store(world.principal, *simple("aerodynamics", "aeroplane aeroplane", "nothing"))
    found = scores(world.principal, "aero")
    assert set(found) == set(ids[:2])
    known = scores(world.principal, "aeroplane")
    assert 0 < found[ids[1]] < known[ids[1]]
    assert scores(world.principal, "ae") == {}


def test_generation_stops_at_its_bound_and_later_groups_only_add(world, monkeypatch) -> None:
    monkeypatch.setattr(lexicon, "GENERATING_POSTINGS", 3)
    ids = store(world.principal, *simple("rare usual", "usual", "usual", "usual"))
    found = scores(world.principal, "rare usual")
    assert list(found) == [ids[0]]
    mean = 5 / 4
    assert found[ids[0]] == pytest.approx(bm25(1, 2, 1, 4, mean) + bm25(1, 2, 4, 4, mean), abs=1e-9)
    monkeypatch.setattr(lexicon, "GENERATING_POSTINGS", 0)
    assert len(scores(world.principal, "usual")) == 4, "one group always generates"


def test_forms_of_one_word_are_one_group(world) -> None:
    items = [
        PassageItem(identity="e", text="running", language="english"),
        PassageItem(identity="s", text="running", language="simple"),
    ]
    ids = store(world.principal, *items)
    found = scores(world.principal, "running")
    assert set(found) == set(ids)
    assert found[ids[0]] == pytest.approx(found[ids[1]])


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, {0, 1, 2, 3}),
        ({"types": ("issue",)}, {0, 1}),
        ({"repository": "acme/app"}, {0, 1, 2}),
        ({"repository": "acme/ap"}, set()),
        ({"state": "open"}, {0}),
        ({"labels": ("bug",)}, {0, 1}),
        ({"labels": ("bug", "ui")}, {1}),
        ({"milestone": "v1"}, {0}),
        ({"assignee": "kim"}, {1}),
        ({"path_prefix": "docs/"}, {2}),
        ({"path_prefix": "docs_"}, set()),
        ({"kinds": ("passage",)}, {0, 1, 2, 3}),
        ({"kinds": ("episodic",)}, set()),
        ({"subkinds": ("doc",)}, {2}),
    ],
)
def test_filters(world, filters, expected) -> None:
    common = {"repo": "acme/app", "text": "kiwi", "language": "simple"}
    ids = store(
        world.principal,
        PassageItem(identity=1, type="issue", state="open", labels=("bug",), milestone="v1", **common),
        PassageItem(identity=2, type="issue", state="closed", labels=("bug", "ui"), assignee="kim", **common),
        PassageItem(identity="docs/a.md", type="doc", path="docs/a.md", **common),
        PassageItem(identity="x", text="kiwi", language="simple"),
    )
    assert set(scores(world.principal, "kiwi", **filters)) == {ids[n] for n in expected}


def test_windows_and_scopes_apply_before_the_caps(world) -> None:
    from datetime import UTC, datetime, timedelta

    start = datetime(2026, 1, 1, tzinfo=UTC)
    items = [
        PassageItem(
            identity=str(n),
            text="kiwi " + "pad " * (n % 3),
            event_at=start + timedelta(days=n),
            scope="old" if n < 20 else "new",
            language="simple",
        )
        for n in range(150)
    ]
    ids = store(world.principal, *items)
    window = {"since": start, "until": start + timedelta(days=15)}
    assert set(scores(world.principal, "kiwi", **window)) == set(ids[:15]), (
        "half-open, and filled from old rows"
    )
    rows = ask(world.principal, "kiwi", scopes=("old",), limit=50).rows
    assert {row.node_id for row in rows} == set(ids[:20])
    assert ask(world.principal, "kiwi", scopes=("none",)).rows == ()


def test_the_plan_reads_postings_by_their_key(world) -> None:
    """Below row security, beside a hundred others, with and without statistics."""
    for _ in range(100):
        store(make_principal(world.workspace), *simple("apple fig", "banana fig"))
    store(world.principal, *simple(*(FIVE * 40)))
    with principal_session(world.principal):
        plan = explain("apple fig")
    for line in plan.splitlines():
        if " on graph_posting" in line:
            assert "using graph_posting_pkey" in line, plan
    assert "graph_posting_pkey" in plan, plan


def explain(query, **filters):
    from apps.retrieval.candidates import lexical

    asked = request(query, **filters)
    allowed = restriction(asked, current_principal())
    cursor = session_cursor()
    known = statistics.read(allowed, 1)
    groups, _ = ANALYSER.query(query, known.languages())
    sql, values = lexical.statement(lexicon.plan(cursor, groups, allowed, known), allowed, 100)
    cursor.execute("EXPLAIN " + sql, values)
    return "\n".join(line for (line,) in cursor.fetchall())


def test_nothing_of_a_query_is_parsed_as_sql_or_a_query_language(world) -> None:
    store(world.principal, "harmless words")
    for query in ("words' OR 1=1", "words); SELECT 1", "words:*", "!words", '"words"'):
        assert len(ask(world.principal, query).rows) == 1, query
    with principal_session(world.principal), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM graph_node")
        assert cursor.fetchone()[0] == 1


def test_a_term_is_a_range_of_the_key_that_is_read_in_order(world) -> None:
    """Only the key can answer that: asked for by equality, a plan once took the index of numbers beside a thousand
    principals, and filtered the whole lexicon of an owner."""
    store(world.principal, *simple(*FIVE))
    sent = []

    class Asked:
        def execute(self, sql, values):
            sent.append((sql, values))

        def fetchall(self):
            return []

    with principal_session(world.principal):
        allowed = restriction(request("apple fig"), current_principal())
        groups, _ = ANALYSER.query("apple fig", [])
        lexicon.plan(Asked(), groups, allowed, statistics.read(allowed, 1))
        cursor = session_cursor()
        cursor.execute("SET LOCAL enable_sort = off")  # so that only the order of an index spares one
        cursor.execute("EXPLAIN " + sent[0][0], sent[0][1])
        plan = "\n".join(line for (line,) in cursor.fetchall())
    (scan,) = [line for line in plan.splitlines() if " on graph_term" in line]
    (ranged,) = [line for line in plan.splitlines() if "o.owner" in line]
    assert "Index Scan using graph_term_pkey" in scan, plan
    assert "Index Cond" in ranged, plan
    assert "(term)::text >= (g.term)::text" in ranged, plan


@pytest.mark.parametrize("filters", [{}, {"repository": "acme/app"}], ids=["found", "filtered"])
def test_a_node_is_a_range_of_the_index_of_numbers_that_is_read_in_order(world, filters) -> None:
    """As a term is: beside hundreds of others all nodes of an owner were once filtered for each row that was found."""
    store(world.principal, *simple(*FIVE))
    with principal_session(world.principal):
        plan = explain("apple fig", **filters)
    scans = [line for line in plan.splitlines() if " on graph_node" in line]
    ranged = [line for line in plan.splitlines() if "node_no >= " in line]
    assert len(scans) == len(ranged) == 1 + bool(filters), plan
    assert all("Index Scan using graph_node_number" in line for line in scans), plan
    assert all("Index Cond" in line for line in ranged), plan
