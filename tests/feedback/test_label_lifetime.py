"""How long judgments and citations live, what they keep, and what an erasure takes with it."""

from uuid import UUID

import pytest
from django.test import Client, override_settings

from apps.core.db.sessions import principal_session, staff_session
from apps.feedback import retention
from apps.feedback.models import CitationSet, Judgment
from apps.feedback.schemas import CitationsRequest
from apps.feedback.selectors import folded_labels
from apps.feedback.services.citations import record_citations
from apps.graph.tasks import embed
from apps.operations import expiry, holds
from apps.operations.erasure import runs
from apps.operations.erasure.tasks import erase
from apps.retrieval.exceptions import UnknownReceipt
from apps.retrieval.keeping import keep_receipts
from apps.retrieval.models import Receipt
from apps.retrieval.selectors import stored_receipt
from apps.traces import tasks as trace_tasks
from apps.traces.exceptions import LegalHold
from apps.traces.models import Trace
from apps.traces.services.erase import erase_trace
from tests.feedback.test_concurrency import together
from tests.support.factories import make_principal, make_staff, make_token
from tests.support.labels import fill, judge, keep
from tests.support.library import ask, store, wiki
from tests.support.statements import calls_for_holds

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def no_broker(monkeypatch) -> None:
    """Nobody waits for a broker that is not there."""
    monkeypatch.setattr(embed, "apply_async", lambda **_: None)


@pytest.fixture
def me(world):
    store(world.principal, *(wiki(f"page-{n}", f"Rollback of billing {'again ' * n}") for n in range(4)))
    return world.principal


@pytest.fixture
def answer(me):
    return ask(me, "billing rollback")


@pytest.fixture
def labelled(me, answer):
    """The answer's receipt, one of its rows judged."""
    receipt_id = UUID(answer["retrieval_receipt_id"])
    with principal_session(me):
        judge(receipt_id, {UUID(answer["results"][0]["node_id"]): True})
    return receipt_id


def counts(connection) -> dict[str, int]:
    tables = {
        "receipts": "retrieval_receipt",
        "judgments": "feedback_judgment",
        "citations": "feedback_citation",
        "keepers": "retrieval_receipt_keeper",
        "keys": "core_idempotencykey",
        "traces": "traces_trace",
    }
    return {
        name: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        for name, table in tables.items()
    }


NOTHING = dict.fromkeys(("receipts", "judgments", "citations", "keepers", "keys", "traces"), 0)


def age(connection, days: int) -> None:
    """All judgments and citations are that much older."""
    for table in ("feedback_judgment", "feedback_citation"):
        connection.execute(f"UPDATE {table} SET admitted_at = admitted_at - make_interval(days => {days})")


def end_traces(connection) -> None:
    connection.execute("UPDATE traces_trace SET expires_at = now()")


def cite_none(receipt_id) -> None:
    submission = {
        "citation_id": UUID(int=receipt_id.int ^ 1),
        "answer_id": "a",
        "answer_sha256": None,
        "method": "human_verified",
        "cited_node_ids": [],
    }
    record_citations(receipt_id=receipt_id, submission=CitationsRequest(**submission))


def test_a_labelled_receipt_outlives_its_trace_and_is_seen_meanwhile(
    world, me, answer, labelled, owner_connection
) -> None:
    unlabelled = UUID(ask(me, "billing")["retrieval_receipt_id"])
    auditor = make_staff(world.workspace, "view_traces")
    end_traces(owner_connection)
    with principal_session(me):
        assert not Trace.objects.exists()
        assert stored_receipt(labelled).receipt.candidates
        with pytest.raises(UnknownReceipt):
            stored_receipt(unlabelled)
    assert trace_tasks.expire.function()["traces"] == 2
    assert counts(owner_connection) == NOTHING | {"receipts": 1, "judgments": 1, "keepers": 1, "keys": 1}
    with principal_session(me):
        assert stored_receipt(labelled).trace_id is None
        assert len(folded_labels()) == 1
        judge(labelled, {UUID(answer["results"][1]["node_id"]): False})
    with staff_session(auditor):
        assert Receipt.objects.get().pk == labelled


def test_a_cited_receipt_outlives_its_trace(me, owner_connection) -> None:
    fill(me)
    receipt = keep(me, in_context=(0,))
    ask(me, "billing")
    with principal_session(me):
        cite_none(receipt.id)
    end_traces(owner_connection)
    trace_tasks.expire.function()
    assert counts(owner_connection)["receipts"] == 1


def test_the_last_record_takes_the_receipt_along(me, labelled, owner_connection) -> None:
    with principal_session(me):
        judge(labelled, withdraws=str(Judgment.objects.get().feedback_id))
    end_traces(owner_connection)
    trace_tasks.expire.function()
    age(owner_connection, 729)
    assert expiry.drain(retention.LABELS).counts == {"judgments": 0, "citations": 0, "failed": 0}
    owner_connection.execute(
        "UPDATE feedback_judgment SET admitted_at = admitted_at - interval '2 days' WHERE kind = 'labels'"
    )
    assert expiry.status(retention.LABELS).values["expired_judgments"] == 1
    assert expiry.drain(retention.LABELS).counts["judgments"] == 1
    assert counts(owner_connection)["receipts"] == 1
    age(owner_connection, 2)
    assert expiry.drain(retention.LABELS).counts["judgments"] == 1
    assert counts(owner_connection) == NOTHING
    assert "expired_judgments" not in expiry.status(retention.LABELS).reasons


def test_with_its_trace_there_a_receipt_stays_when_its_last_label_goes(
    me, labelled, owner_connection
) -> None:
    age(owner_connection, 731)
    assert expiry.drain(retention.LABELS).counts["judgments"] == 1
    assert counts(owner_connection) == NOTHING | {"receipts": 1, "traces": 1}


def test_another_record_keeps_it_on(me, labelled, owner_connection) -> None:
    with principal_session(me):
        keep_receipts(receipt_ids=[labelled, labelled], kind="tests.record", record_id=UUID(int=7))
    end_traces(owner_connection)
    trace_tasks.expire.function()
    age(owner_connection, 731)
    expiry.drain(retention.LABELS)
    assert counts(owner_connection) == NOTHING | {"receipts": 1, "keepers": 1}
    owner_connection.execute("SELECT retrieval_let_go(ARRAY[%s])", [UUID(int=7)])
    assert counts(owner_connection) == NOTHING


def test_days_are_those_of_the_gate_policy_in_effect(world, me, labelled, owner_connection) -> None:
    days = "SELECT feedback_retention_days(%s)"
    assert owner_connection.execute(days, [world.workspace.pk]).fetchone() == (730,)
    owner_connection.execute(
        "INSERT INTO core_storedpolicy (id, workspace_id, kind, version, effective_from, document, reason, hash) "
        "VALUES (gen_random_uuid(), %s, 'gate', 1, statement_timestamp(), '{\"retention_days\": 30}', 'shorter', %s)",
        [world.workspace.pk, "0" * 64],
    )
    assert owner_connection.execute(days, [world.workspace.pk]).fetchone() == (30,)
    age(owner_connection, 31)
    assert expiry.drain(retention.LABELS).counts["judgments"] == 1


def test_one_principal_after_another_is_pruned(world, me, labelled, owner_connection) -> None:
    other = make_principal(world.workspace)
    fill(other)
    theirs = keep(other, in_context=(0,))
    with principal_session(other):
        cite_none(theirs.id)
    age(owner_connection, 731)
    assert expiry.drain(retention.LABELS).counts == {"judgments": 1, "citations": 1, "failed": 0}


# Holds.


def hold(world, kind: str, object_id: UUID) -> None:
    with staff_session(make_staff(world.workspace, "review_retention", "view_traces")):
        holds.place(
            workspace_id=world.workspace.pk, reference="case 7", reason="asked for", items=[(kind, object_id)]
        )


@pytest.mark.parametrize("kind", ["traces.trace", "traces.principal"])
def test_a_hold_keeps_judgments_past_their_term(world, me, answer, labelled, owner_connection, kind) -> None:
    hold(world, kind, UUID(answer["trace_id"]) if kind == "traces.trace" else me.principal_id)
    age(owner_connection, 731)
    assert expiry.drain(retention.LABELS).counts["judgments"] == 0
    assert expiry.status(retention.LABELS).values["expired_judgments"] == 0
    with principal_session(me), pytest.raises(LegalHold):
        erase_trace(trace_id=UUID(answer["trace_id"]))
    assert counts(owner_connection)["judgments"] == 1


# Erasure.


def test_erasing_a_trace_takes_its_receipt_and_what_hangs_on_it_at_once(
    me, answer, labelled, owner_connection
) -> None:
    with principal_session(me):
        keep_receipts(receipt_ids=[labelled], kind="tests.record", record_id=UUID(int=7))
        erase_trace(trace_id=UUID(answer["trace_id"]))
        assert not Judgment.objects.exists()
        with pytest.raises(UnknownReceipt):
            stored_receipt(labelled)
    assert counts(owner_connection) == NOTHING


def test_erasing_a_principal_leaves_no_record_of_it(
    world, me, labelled, owner_connection, monkeypatch, tmp_path
) -> None:
    other = make_principal(world.workspace)
    for principal in (me, other):
        fill(principal)
        receipt = keep(principal, in_context=(0,))
        with principal_session(principal):
            judge(receipt.id, {receipt.nodes[0]: True})
            cite_none(receipt.id)
    sent: list[UUID] = []
    monkeypatch.setattr(erase, "delay", sent.append)
    client = Client(headers={"Authorization": f"Bearer {make_token(me, 'erase')}"})
    with override_settings(ERASURE_FILE=tmp_path / "erasures.jsonl"):
        assert client.post("/v1/me/erasure", {"confirm": "erase"}, "application/json").status_code == 202
        runs.run(sent[0])
    left = NOTHING | {"receipts": 1, "judgments": 1, "citations": 1, "keepers": 2, "keys": 2}
    assert counts(owner_connection) == left
    with principal_session(other):
        assert CitationSet.objects.count() == 1


def test_what_is_not_due_costs_no_look_at_holds(me, labelled, owner_connection, admin_connection) -> None:
    """The status is read again and again, whatever number of records there is."""
    for days, calls in ((0, 0), (731, 1)):
        age(owner_connection, days)
        assert calls_for_holds(admin_connection, "feedback_labels_status") == calls


# At once.


def test_equal_submissions_at_once_are_one_record_and_others_stand_in_order(me, answer) -> None:
    receipt_id = UUID(answer["retrieval_receipt_id"])
    node = UUID(answer["results"][0]["node_id"])
    same = str(UUID(int=7))
    calls = [lambda: judge(receipt_id, {node: True}, feedback_id=same)] * 4
    calls += [lambda value=value: judge(receipt_id, {node: value}, by="anna") for value in (True, False)]
    together(me, calls)
    with principal_session(me):
        times = list(Judgment.objects.values_list("admitted_at", flat=True))
        assert len(set(times)) == len(times) == 3
        assert sorted(folded_labels().annotators) == ["anna", "principal"]
