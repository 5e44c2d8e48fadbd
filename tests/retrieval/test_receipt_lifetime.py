"""How long a receipt lives, what it outlives, who sees it, and that drift is noticed."""

import hashlib
from uuid import UUID

import pytest
from django.db import DatabaseError, connection
from django.test import Client, override_settings

from apps.core.db.sessions import principal_session, staff_session
from apps.graph.models import Node
from apps.graph.services import delete_passages
from apps.operations.erasure import runs
from apps.operations.erasure.tasks import erase
from apps.operations.models import Alarm, NewestSample
from apps.retrieval import tasks
from apps.retrieval.exceptions import CorruptReceipt, UnknownReceipt
from apps.retrieval.models import Receipt
from apps.retrieval.selectors import stored_receipt
from apps.search import services as search_services
from apps.traces import tasks as trace_tasks
from apps.traces.models import Trace
from apps.traces.services.erase import erase_trace
from tests.support.factories import make_principal, make_staff, make_token, make_world
from tests.support.library import ask, store, wiki

pytestmark = pytest.mark.django_db(transaction=True)

PAGES = [wiki(f"page-{n}", f"Rollback of billing {'again ' * n}") for n in range(4)]


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def me(world):
    return world.principal


@pytest.fixture
def answer(me):
    store(me, *PAGES)
    return ask(me, "billing rollback")


def receipt(principal, answer):
    with principal_session(principal):
        return stored_receipt(UUID(answer["retrieval_receipt_id"]))


def receipts(principal) -> int:
    with principal_session(principal):
        return Receipt.objects.count()


def test_a_search_keeps_a_receipt_with_its_trace_and_names_both(me, answer) -> None:
    found = receipt(me, answer)
    assert str(found.trace_id) == answer["trace_id"]
    assert found.receipt.request.query.id == answer["trace_id"]
    assert [c.node_id for c in found.receipt.candidates] == [row["node_id"] for row in answer["results"]]
    assert [c.score for c in found.receipt.candidates] == [row["score"] for row in answer["results"]]
    with principal_session(me):
        assert Trace.objects.get().retrieval_receipt_id == found.id
    assert found.receipt.profile.status == "none"
    again = ask(me, "billing rollback", ranking_multipliers={"lexical": 1.0})
    assert receipt(me, again).receipt.profile.status == "request_override"
    assert receipt(me, again).receipt.request.query_identity == found.receipt.request.query_identity


def test_a_search_without_rows_has_a_receipt_and_scan_and_fetch_have_none(me, answer) -> None:
    empty = ask(me, "nothing here has that")
    assert receipt(me, empty).receipt.candidates == ()
    fetched = ask(me, node_ids=[UUID(answer["results"][0]["node_id"])])
    assert fetched["trace_id"]
    assert fetched["retrieval_receipt_id"] is None
    assert ask(me)["retrieval_receipt_id"] is None


def test_a_receipt_that_cannot_be_saved_leaves_the_rows_and_no_trace(me, monkeypatch) -> None:
    store(me, *PAGES)

    def failing(**_: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")

    monkeypatch.setattr(search_services, "writing_receipt", failing)
    answer = ask(me, "billing rollback")
    assert len(answer["results"]) == 4
    assert (answer["receipt_persisted"], answer["feedback_available"]) == (False, False)
    assert answer["memory_error"] == "memory_save_failed"
    with principal_session(me):
        assert not Trace.objects.exists()


def test_it_stays_byte_equal_when_nodes_are_edited_archived_and_deleted(me, answer, owner_connection) -> None:
    before = receipt(me, answer)
    store(me, *(wiki(f"page-{n}", f"Other words {n}") for n in range(4)))
    assert ask(me, "other words")["results"][0]["content"].startswith("Other")
    assert receipt(me, answer).document == before.document
    owner_connection.execute("UPDATE graph_node SET archived_at = now()")
    assert receipt(me, answer).document == before.document
    with principal_session(me):
        assert delete_passages(node_ids=list(Node.objects.values_list("id", flat=True))) == 4
    assert receipt(me, answer).document == before.document


def test_after_its_words_are_erased_it_still_replays(me, answer, owner_connection) -> None:
    owner_connection.execute("UPDATE traces_trace SET recorded_at = recorded_at - interval '31 days'")
    assert trace_tasks.erase_text.function()["queries"] == 1
    with principal_session(me):
        assert Trace.objects.get().query is None
    assert receipt(me, answer).receipt.candidates


def test_the_checksum_survives_a_dump(me, answer, owner_connection) -> None:
    """COPY is what dump and restore use."""
    found = receipt(me, answer)
    owner_connection.execute("CREATE TEMP TABLE restored (LIKE retrieval_receipt)")
    with owner_connection.cursor() as cursor:
        with cursor.copy("COPY retrieval_receipt TO STDOUT") as out:
            dumped = b"".join(bytes(part) for part in out)
        with cursor.copy("COPY restored FROM STDIN") as restore:
            restore.write(dumped)
        document, checksum, scores = cursor.execute(
            "SELECT document, checksum, scores FROM restored WHERE id = %s", [found.id]
        ).fetchone()
    assert hashlib.sha256(document.encode()).hexdigest() == checksum == found.checksum
    assert scores == [c.score for c in found.receipt.candidates]


def test_nobody_changes_a_receipt(me, answer) -> None:
    for change in ("UPDATE retrieval_receipt SET checksum = checksum", "DELETE FROM retrieval_receipt"):
        with pytest.raises(DatabaseError), principal_session(me), connection.cursor() as cursor:
            cursor.execute(change)
    assert receipts(me) == 1


def test_another_principal_has_none_and_staff_see_by_their_grant(world, me, answer) -> None:
    other = make_principal(world.workspace)
    with pytest.raises(UnknownReceipt):
        receipt(other, answer)
    assert receipts(other) == 0
    with staff_session(make_staff(world.workspace, "view_traces")):
        assert Receipt.objects.count() == 1
    with staff_session(make_staff(world.workspace, "curate")):
        assert Receipt.objects.count() == 0


# The end.


def test_it_is_hidden_and_goes_with_its_trace(me, answer, owner_connection) -> None:
    ask(me, "billing")
    owner_connection.execute("UPDATE traces_trace SET expires_at = now() WHERE id = %s", [answer["trace_id"]])
    with pytest.raises(UnknownReceipt):
        receipt(me, answer)
    assert receipts(me) == 1
    assert count(owner_connection) == 2
    assert trace_tasks.expire.function()["traces"] == 1
    assert count(owner_connection) == 1


def test_erasing_a_trace_erases_its_receipt(me, answer, owner_connection) -> None:
    ask(me, "billing")
    with principal_session(me):
        erase_trace(trace_id=UUID(answer["trace_id"]))
    assert count(owner_connection) == 1
    with pytest.raises(UnknownReceipt):
        receipt(me, answer)


def test_erasing_a_principal_leaves_no_receipt_of_it(
    world, me, answer, owner_connection, monkeypatch, tmp_path
) -> None:
    sent: list[UUID] = []
    monkeypatch.setattr(erase, "delay", sent.append)
    other = make_principal(world.workspace)
    store(other, *PAGES)
    ask(other, "billing")
    client = Client(headers={"Authorization": f"Bearer {make_token(me, 'erase')}"})
    with override_settings(ERASURE_FILE=tmp_path / "erasures.jsonl"):
        assert client.post("/v1/me/erasure", {"confirm": "erase"}, "application/json").status_code == 202
        runs.run(sent[0])
    assert count(owner_connection) == receipts(other) == 1


def count(connection) -> int:
    return connection.execute("SELECT count(*) FROM retrieval_receipt").fetchone()[0]


# The nightly replay.


def test_a_sample_is_replayed_and_drift_is_an_alarm_that_changes_nothing(
    world, me, answer, owner_connection
) -> None:
    ask(me, "billing")
    assert tasks.replay_sample.function() == {"replayed": 2, "drifted": 0}
    assert not Alarm.objects.filter(source=tasks.SOURCE, resolved_at=None).exists()
    tampered = (
        "UPDATE retrieval_receipt SET document = changed, checksum = encode(sha256(changed::bytea), 'hex') "
        "FROM (SELECT id AS of, regexp_replace(document, '\"score\":0\\.(\\d)', '\"score\":0.0\\1') AS changed "
        "FROM retrieval_receipt) c WHERE of = id AND id = %s"
    )
    owner_connection.execute(tampered, [answer["retrieval_receipt_id"]])
    with pytest.raises(CorruptReceipt):
        receipt(me, answer)
    assert tasks.replay_sample.function() == {"replayed": 2, "drifted": 1}
    alarm = Alarm.objects.get(source=tasks.SOURCE, resolved_at=None)
    assert (alarm.reason, alarm.workspace_id) == ("drift", world.workspace.pk)
    samples = NewestSample.objects.filter(workspace=world.workspace, name__startswith="receipts_")
    assert {s.name: s.value for s in samples} == {"receipts_replayed": 2, "receipts_drifted": 1}
    owner_connection.execute("DELETE FROM retrieval_receipt WHERE id = %s", [answer["retrieval_receipt_id"]])
    assert tasks.replay_sample.function() == {"replayed": 1, "drifted": 0}
    assert not Alarm.objects.filter(source=tasks.SOURCE, resolved_at=None).exists()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("scores", "array_fill(0.5::float8, ARRAY[4])"),
        ("node_ids", "node_ids[2:]"),
        ("weights", "weights[2:]"),
    ],
)
def test_arrays_that_say_another_thing_are_refused(me, answer, owner_connection, column, value) -> None:
    owner_connection.execute(f"UPDATE retrieval_receipt SET {column} = {value}")
    with pytest.raises(CorruptReceipt):
        receipt(me, answer)


def test_the_sample_is_bounded_and_reaches_every_workspace(me, answer) -> None:
    other = make_world().principal
    store(other, *PAGES)
    for _ in range(5):
        ask(other, "billing")
    drawn = tasks._draw(3)
    assert {principal for _, principal in drawn} == {me.principal_id, other.principal_id}
    assert all(1 <= len(receipts) <= 3 for receipts in drawn.values())
