"""Passages: one row a place and text, and an index that is exact after every change."""

import pytest
from django.db import connection

from apps.core import clock
from apps.core.db.sessions import principal_session
from apps.graph.models import Node, Passage, Posting, Vector
from apps.graph.services import PassageItem, delete_passages, write_passages
from tests.support.factories import make_principal, make_world
from tests.support.memory import corpus, frequencies, give_vectors, recounted, store

pytestmark = pytest.mark.django_db


@pytest.fixture
def world():
    return make_world()


def write(world, *items):
    with principal_session(world.principal):
        return write_passages(items=list(items))


def assert_no_drift(principal) -> None:
    counted, nodes, length = recounted(principal)
    assert frequencies(principal) == counted
    stored = corpus(principal)
    assert (stored["nodes"], stored["total_len"]) == (nodes, length)


def test_the_same_text_at_the_same_place_is_one_row(world) -> None:
    item = PassageItem(identity="a", text="Wings in a slipstream")
    (first,) = write(world, item)
    (again,) = write(world, item)
    assert (first.result, again.result) == ("created", "unchanged")
    assert again.node_id == first.node_id
    assert again.version == first.version
    with principal_session(world.principal):
        assert Node.objects.count() == 1
    assert_no_drift(world.principal)


def test_provenance_is_brought_up_to_date_without_a_new_row(world) -> None:
    first = PassageItem(
        identity=7, type="issue", repo="acme/app", text="t", updated_at="2026-01-02T03:04:05Z"
    )
    moved = PassageItem(
        identity=7,
        type="issue",
        repo="acme/app",
        text="t",
        updated_at="2026-02-02T03:04:05Z",
        state="closed",
        labels=("bug",),
    )
    (one,), (two,) = write(world, first), write(world, moved)
    assert (two.result, two.node_id, two.version) == ("unchanged", one.node_id, "2026-02-02T03:04:05Z")
    with principal_session(world.principal):
        passage = Passage.objects.get(pk=one.node_id)
        assert (passage.state, passage.labels, passage.number) == ("closed", ["bug"], 7)
        assert Node.objects.get(pk=one.node_id).updated_at.isoformat() == "2026-02-02T03:04:05+00:00"


def test_another_text_replaces_the_row_with_its_index(world) -> None:
    (node_id,) = store(world.principal, PassageItem(identity="a", text="old words here"))
    give_vectors(world.principal, {node_id: [1.0]})
    assert corpus(world.principal)["vectors"] == 1
    (changed,) = write(world, PassageItem(identity="a", text="new words there"))
    assert changed.result == "updated"
    assert changed.node_id != node_id
    with principal_session(world.principal):
        assert list(Node.objects.values_list("id", flat=True)) == [changed.node_id]
        assert not Vector.objects.exists()
    assert "w:old" not in frequencies(world.principal)
    assert corpus(world.principal)["vectors"] == 0
    assert_no_drift(world.principal)


def test_a_moved_border_between_title_and_body_is_a_change(world) -> None:
    (first,) = write(world, PassageItem(identity="a", text="a\n\nb"))
    (second,) = write(world, PassageItem(identity="a", title="a", text="b"))
    assert (first.result, second.result) == ("created", "updated")


def test_places_differ_by_scope_repo_type_identity_and_part(world) -> None:
    results = write(
        world,
        PassageItem(identity="1", text="t"),
        PassageItem(identity="1", text="t", part=1),
        PassageItem(identity="1", text="t", scope="other"),
        PassageItem(identity="1", text="t", repo="conn:b"),
        PassageItem(identity="1", text="t", type="doc", repo="acme/app"),
        PassageItem(identity=1, text="t", type="issue", repo="acme/app"),
        PassageItem(identity=["1", "1"], text="t", type="diff", repo="acme/app"),
    )
    assert [result.result for result in results] == ["created"] * 7
    assert len({result.node_id for result in results}) == 7


def test_of_two_texts_for_one_place_in_a_batch_the_later_wins(world) -> None:
    one, two = write(world, PassageItem(identity="a", text="one"), PassageItem(identity="a", text="two"))
    assert (one.result, two.result) == ("created", "updated")
    with principal_session(world.principal):
        assert Node.objects.get().body == "two"
    assert_no_drift(world.principal)


def test_a_bad_item_sinks_no_other(world) -> None:
    results = write(
        world,
        PassageItem(identity="a", text="good"),
        PassageItem(identity="b", text="x" * 10_001),
        PassageItem(identity="c", text="a\x00b"),
        PassageItem(identity="d", text="\ud800"),
        PassageItem(identity="", text="t"),
        PassageItem(identity=True, text="t"),
        PassageItem(identity=["only one"], text="t", type="diff"),
        PassageItem(identity="e", text="also good"),
    )
    assert [result.error for result in results] == [
        None,
        "text_too_long",
        "text_not_storable",
        "text_not_storable",
        "bad_identity",
        "bad_identity",
        "bad_identity",
        None,
    ]
    assert [result.index for result in results] == list(range(8))
    assert corpus(world.principal)["nodes"] == 2


def test_deleting_removes_postings_counts_and_vectors(world) -> None:
    ids = store(world.principal, "alpha beta", "beta gamma")
    give_vectors(world.principal, {node_id: [1.0] for node_id in ids})
    with principal_session(world.principal):
        assert delete_passages(node_ids=ids[:1]) == 1
    assert set(frequencies(world.principal)) == {"w:beta", "w:gamma"}
    assert corpus(world.principal)["vectors"] == 1
    assert_no_drift(world.principal)
    with principal_session(world.principal):
        assert delete_passages(node_ids=ids) == 1
        assert not Posting.objects.exists()
    assert corpus(world.principal)["nodes"] == 0


def test_another_principal_neither_sees_nor_deletes(world) -> None:
    stranger = make_principal(world.workspace)
    (node_id,) = store(world.principal, "secret words")
    with principal_session(stranger):
        assert not Node.objects.exists()
        assert not Posting.objects.exists()
        assert delete_passages(node_ids=[node_id]) == 0
    with principal_session(world.principal):
        assert Node.objects.count() == 1


def test_the_shared_principal_is_read_by_all_of_its_workspace_and_nobody_else(world) -> None:
    store(_shared(world), "common knowledge")
    with principal_session(world.principal):
        assert Node.objects.get().body == "common knowledge"
    with principal_session(make_world().principal):
        assert not Node.objects.exists()


def _shared(world):
    from apps.core.db.sessions import identity_of

    return identity_of(world.principal.shared_principal_id)


def test_titles_count_and_are_kept_apart(world) -> None:
    (node_id,) = store(world.principal, PassageItem(identity="a", title="  A  title ", text="and text"))
    with principal_session(world.principal):
        node = Node.objects.get(pk=node_id)
    assert (node.label, node.body) == ("A title", "and text")
    assert frequencies(world.principal) == {"w:titl": 1, "w:text": 1}


def test_texts_are_stored_composed(world) -> None:
    (node_id,) = store(world.principal, "Cafe\u0301")
    with principal_session(world.principal):
        assert Node.objects.get(pk=node_id).body == "Café"


def test_the_digest_of_a_corpus_changes_with_it_and_only_with_it(world) -> None:
    store(world.principal, "one", "two")
    before = corpus(world.principal)
    store(world.principal, "one", "two")
    assert corpus(world.principal) == before
    (node_id,) = store(world.principal, PassageItem(identity="9", text="three"))
    added = corpus(world.principal)
    assert added["revision"] > before["revision"]
    assert added["content"] != before["content"]
    with principal_session(world.principal):
        delete_passages(node_ids=[node_id])
    gone = corpus(world.principal)
    assert gone["content"] == before["content"]
    assert gone["revision"] > added["revision"]


def test_reading_does_not_change_the_digest_but_provenance_and_vectors_do(world) -> None:
    (node_id,) = store(
        world.principal, PassageItem(identity=1, type="issue", repo="a/b", text="t", updated_at="x")
    )
    before = corpus(world.principal)
    with principal_session(world.principal), connection.cursor() as cursor:
        cursor.execute("UPDATE graph_node SET access_count = access_count + 1")
    assert corpus(world.principal) == before
    store(world.principal, PassageItem(identity=1, type="issue", repo="a/b", text="t", updated_at="y"))
    moved = corpus(world.principal)
    assert moved["revision"] > before["revision"]
    give_vectors(world.principal, {node_id: [1.0]})
    assert corpus(world.principal)["revision"] > moved["revision"]


def test_a_document_is_versioned_by_the_time_that_brought_its_text(world) -> None:
    with clock.frozen(clock.now()) as at:
        (first,) = write(world, PassageItem(identity="a", text="t"))
        assert first.version == clock.iso(at.at)


def test_numbers_are_never_given_twice_among_the_living(world) -> None:
    ids = store(world.principal, "a1 b1", "c1 d1", "e1 f1")
    with principal_session(world.principal):
        delete_passages(node_ids=ids[2:])
    store(world.principal, PassageItem(identity="x", text="g1 h1"), PassageItem(identity="y", text="i1"))
    with principal_session(world.principal):
        numbers = list(Node.objects.values_list("node_no", flat=True))
    assert len(set(numbers)) == len(numbers)
    assert_no_drift(world.principal)


@pytest.mark.django_db(transaction=True)
def test_deleting_in_the_order_of_an_erasure_leaves_nothing_behind(owner_connection) -> None:
    from apps.operations.erasure.rules import rules

    world = make_world()
    other = make_principal(world.workspace)
    for principal in (world.principal, other):
        ids = store(
            principal, "alpha beta", PassageItem(identity="w/a.md", type="wiki_doc", repo="r", text="b")
        )
        give_vectors(principal, {ids[0]: [1.0]})
    owner = world.principal.principal_id
    tables = [rule for rule in rules() if rule.table.startswith("graph_")]
    for rule in tables:
        owner_connection.execute(f'DELETE FROM "{rule.table}" WHERE {rule.owner_column} = %s', [owner])
    for rule in tables:
        left = f'SELECT count(*) FROM "{rule.table}" WHERE {rule.owner_column} = %s'
        assert owner_connection.execute(left, [owner]).fetchone() == (0,), rule.table
    assert_no_drift(other)
    assert corpus(other)["nodes"] == 2
