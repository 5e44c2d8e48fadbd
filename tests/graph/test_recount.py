"""The nightly recount: nothing to mend after ordinary work, and everything after a damage."""

import pytest

from apps.accounts.grants import GRANTS
from apps.core.db.sessions import principal_session, staff_session
from apps.graph.selectors import VectorProgress, vector_progress
from apps.graph.services.passages import delete_passages
from apps.graph.tasks import recount, verify
from apps.operations.models import Sample
from tests.support.factories import make_staff, make_workspace, make_world
from tests.support.memory import corpus, frequencies, give_vectors, recounted, store

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def owner(world):
    """A memory that was written, reworded and partly deleted."""
    me = world.principal
    first = store(me, "one two three", "two three", "three", "gone")
    store(me, "one two four", "two three", "three", "gone")
    with principal_session(me):
        delete_passages(node_ids=[first[3]])
    give_vectors(me, {first[1]: [1.0], first[2]: [0.5]})
    return me


def test_ordinary_work_leaves_nothing_to_mend(owner) -> None:
    before = corpus(owner), frequencies(owner)
    assert recount(owner.principal_id) == 0
    assert (corpus(owner), frequencies(owner)) == before


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE graph_term SET df = df + 3 WHERE principal_id = %(owner)s AND df = 2",
        "INSERT INTO graph_term (principal_id, kind, term, term_no, df) VALUES (%(owner)s, 3, 'nowhere', 900, 2)",
        "UPDATE graph_corpus SET nodes = nodes + 1 WHERE principal_id = %(owner)s",
        "UPDATE graph_corpus SET total_len = 1 WHERE principal_id = %(owner)s",
        "UPDATE graph_corpus SET vectors = 0 WHERE principal_id = %(owner)s",
        "UPDATE graph_corpus SET languages = '{}' WHERE principal_id = %(owner)s",
        "INSERT INTO graph_posting (principal_id, term_no, node_no, tf, len) SELECT %(owner)s, term_no, 999, 1, 1 "
        "FROM graph_term WHERE principal_id = %(owner)s AND df = 2",
    ],
)
def test_a_damage_is_mended_and_counted(owner, admin_connection, damage) -> None:
    right = corpus(owner), frequencies(owner)
    admin_connection.execute(damage, {"owner": owner.principal_id})
    assert recount(owner.principal_id) > 0
    mended = corpus(owner)
    assert (mended | {"revision": right[0]["revision"]}, frequencies(owner)) == right
    assert (frequencies(owner), mended["nodes"], mended["total_len"]) == recounted(owner)
    assert recount(owner.principal_id) == 0


def test_the_task_visits_every_owner_and_measures_the_drift(owner, admin_connection) -> None:
    other = make_world().principal
    store(other, "one")
    admin_connection.execute(
        "UPDATE graph_corpus SET nodes = 7 WHERE principal_id = %s", [other.principal_id]
    )
    counts = verify.function()
    assert counts is not None
    assert (counts["drifted"], counts["repaired"], counts["left"]) == (1, 1, 0)
    assert counts["owners"] >= 2
    assert Sample.objects.filter(name="graph_lexical_drift").latest("at").value == 1
    assert corpus(other)["nodes"] == 1


def test_staff_that_see_its_rows_see_how_far_vectors_are(world, owner) -> None:
    for user, sees in (
        (make_staff(world.workspace, "view_traces"), True),
        (make_staff(world.workspace, "operate_collection"), False),
        (make_staff(make_workspace(), *GRANTS), False),
    ):
        with staff_session(user):
            found = vector_progress(owner.principal_id)
        assert found == (VectorProgress(live=3, ready=2, empty=0, failed=0) if sees else None)


def test_rows_of_no_substance_are_done(owner) -> None:
    assert VectorProgress(live=3, ready=2, empty=1, failed=0).done == 3
    assert VectorProgress(live=3, ready=2, empty=0, failed=1).done == 2
