"""How long ablations and assessments live, what they keep, and what an erasure takes with it."""

from uuid import UUID, uuid4

import pytest
from django.test import Client, override_settings

from apps.core.db.sessions import principal_session, staff_session
from apps.feedback import retention
from apps.feedback.models import Ablation, PresenceAssessment
from apps.feedback.schemas import AblationRequest, AssessmentRequest, CitationsRequest
from apps.feedback.services.ablations import ablate, assess
from apps.feedback.services.citations import record_citations
from apps.operations import expiry
from apps.operations.erasure import runs
from apps.operations.erasure.tasks import erase
from apps.retrieval.selectors import stored_receipt
from apps.traces import tasks as trace_tasks
from tests.feedback.test_label_lifetime import end_traces, hold
from tests.support.factories import make_principal, make_staff, make_token, make_world
from tests.support.library import ask, store, wiki
from tests.support.statements import calls_for_holds

pytestmark = pytest.mark.django_db(transaction=True)

TABLES = ("feedback_ablation", "feedback_assessment")


def made(principal) -> UUID:
    """The receipt of an answer whose first entry was cited, taken out and assessed."""
    store(principal, *(wiki(f"page-{n}", f"Rollback of billing {'again ' * n}") for n in range(3)))
    answer = ask(principal, "billing rollback", include_context=True)
    receipt, node = UUID(answer["retrieval_receipt_id"]), answer["context"]["entries"][0]["node_id"]
    with principal_session(principal):
        cited = CitationsRequest(
            citation_id=uuid4(),
            answer_id="a",
            answer_sha256=None,
            method="human_verified",
            cited_node_ids=[node],
        )
        record_citations(receipt_id=receipt, submission=cited)
        ablation = ablate(receipt_id=receipt, submission=AblationRequest(node_ids=[node]))
        verdict = AssessmentRequest(
            evaluation_id="e",
            citation_id=cited.citation_id,
            baseline_correct=True,
            counterfactual_correct=False,
        )
        assess(ablation_id=UUID(ablation["ablation_id"]), submission=verdict)
    return receipt


def count(connection, *tables: str) -> list[int]:
    return [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]


def age(connection, days: int, *tables: str) -> None:
    for table in tables:
        connection.execute(f"UPDATE {table} SET admitted_at = admitted_at - make_interval(days => {days})")


def test_an_ablation_keeps_its_receipt_and_goes_with_its_last_assessment(world, owner_connection) -> None:
    receipt = made(world.principal)
    end_traces(owner_connection)
    trace_tasks.expire.function()
    age(owner_connection, 731, "feedback_citation")
    assert expiry.drain(retention.LABELS).counts["citations"] == 1
    with principal_session(world.principal):
        assert stored_receipt(receipt).trace_id is None
    age(owner_connection, 731, "feedback_ablation")
    assert expiry.drain(retention.ABLATIONS).counts == {"ablations": 0, "assessments": 0, "failed": 0}
    assert expiry.status(retention.ABLATIONS).values["expired_ablations"] == 0
    age(owner_connection, 731, "feedback_assessment")
    values = expiry.status(retention.ABLATIONS).values
    assert values["expired_assessments"] == 1
    assert values["oldest_overdue_seconds"] > 0
    assert expiry.drain(retention.ABLATIONS).counts == {"ablations": 1, "assessments": 1, "failed": 0}
    assert count(owner_connection, *TABLES, "retrieval_receipt", "retrieval_receipt_keeper") == [0, 0, 0, 0]


def test_one_principal_after_another_is_pruned_and_a_hold_keeps(world, owner_connection) -> None:
    other = make_principal(world.workspace)
    for principal in (world.principal, other):
        made(principal)
    hold(world, "traces.principal", other.principal_id)
    age(owner_connection, 731, *TABLES)
    assert expiry.drain(retention.ABLATIONS).counts == {"ablations": 1, "assessments": 1, "failed": 0}
    assert expiry.status(retention.ABLATIONS).values["expired_ablations"] == 0
    with principal_session(other):
        assert (Ablation.objects.count(), PresenceAssessment.objects.count()) == (1, 1)


def test_what_is_not_due_costs_no_look_at_holds(world, owner_connection, admin_connection) -> None:
    """The status is read again and again, whatever number of records there is."""
    made(world.principal)
    for days, calls in ((0, 0), (731, 2)):
        age(owner_connection, days, *TABLES)
        assert calls_for_holds(admin_connection, "feedback_ablations_status") == calls


def test_erasing_a_principal_takes_its_ablations_alone(
    world, owner_connection, monkeypatch, tmp_path
) -> None:
    other = make_principal(world.workspace)
    for principal in (world.principal, other):
        made(principal)
    sent: list[UUID] = []
    monkeypatch.setattr(erase, "delay", sent.append)
    client = Client(headers={"Authorization": f"Bearer {make_token(world.principal, 'erase')}"})
    with override_settings(ERASURE_FILE=tmp_path / "erasures.jsonl"):
        assert client.post("/v1/me/erasure", {"confirm": "erase"}, "application/json").status_code == 202
        runs.run(sent[0])
    assert count(owner_connection, *TABLES) == [1, 1]
    with principal_session(other):
        assert Ablation.objects.count() == 1


def test_staff_see_the_records_of_their_workspaces_alone(world) -> None:
    made(world.principal)
    with staff_session(make_staff(world.workspace, "view_traces")):
        assert (Ablation.objects.count(), PresenceAssessment.objects.count()) == (1, 1)
    with staff_session(make_staff(make_world().workspace, "view_traces")):
        assert not Ablation.objects.exists()
