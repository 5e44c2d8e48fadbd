"""Relevance judgments: what is admitted, what is refused with nothing written, and what a repetition answers."""

import json
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import DatabaseError, connection

from apps.core import clock
from apps.core.db.sessions import principal_session, staff_session
from apps.core.models import AuditEntry, IdempotencyKey
from apps.core.problems import Forbidden
from apps.feedback.exceptions import OtherAnnotator
from apps.feedback.models import Judgment
from apps.feedback.schemas import JudgmentRequest, JudgmentsQuery
from apps.feedback.selectors import judgments_page
from apps.feedback.services.judgments import record_judgment
from apps.feedback.services.staff import judge_receipt
from apps.retrieval.exceptions import UnknownReceipt
from apps.retrieval.models import Receipt
from tests.support.api import Api, code_of
from tests.support.factories import make_principal, make_staff
from tests.support.labels import fill, judge, keep, labels

pytestmark = pytest.mark.django_db


@pytest.fixture
def receipt(me):
    """Places 0 and 1 are in the context, 1 as a reference."""
    return keep(me, in_context=(0, 1), references=(1,))


def submit(api, receipt, body):
    return api.post(f"/v1/receipts/{receipt.id}/judgments", body)


def written(principal) -> int:
    with principal_session(principal):
        return Judgment.objects.count() + IdempotencyKey.objects.filter(tool="feedback.judgments").count()


def test_a_judgment_binds_the_receipt_and_takes_the_time_of_the_server(me, api, receipt) -> None:
    a, b = receipt.nodes[:2]
    body = labels({b: False, a: True}, grade={str(a): 3}, reason="the steps are in it")
    with clock.frozen(clock.now() + timedelta(hours=1)) as at:
        response = submit(api, receipt, body)
    assert response.status_code == 200, response.content
    with principal_session(me):
        checksum = Receipt.objects.get(pk=receipt.id).checksum
    assert json.loads(response.content) == {
        "feedback_id": body["feedback_id"],
        "receipt_id": str(receipt.id),
        "receipt_checksum": checksum,
        "timestamp": clock.iso(at.at),
        "kind": "labels",
        "surface": "results",
        "method": "explicit_user",
        "annotator": "principal",
        "node_ids": [str(a), str(b)],
        "labels": {str(a): True, str(b): False},
        "grade": {str(a): 3},
        "supersedes": None,
        "withdraws": None,
        "reason": "the steps are in it",
    }


# What is refused.


@pytest.mark.parametrize("value", [1, 0, "true", None, 1.0])
def test_a_label_is_strictly_a_boolean(me, api, receipt, value) -> None:
    response = submit(api, receipt, labels({receipt.nodes[0]: value, receipt.nodes[1]: True}))
    assert (response.status_code, code_of(response)) == (400, "invalid_request")
    assert json.loads(response.content)["pointer"] == f"/labels/{receipt.nodes[0]}"
    assert written(me) == 0


@pytest.mark.parametrize(
    "change",
    [
        {"labels": {}},
        {"labels": None},
        {"labels": {"no id": True}},
        {"feedback_id": "7"},
        {"surface": "page"},
        {"surface": None},
        {"method": "guess"},
        {"grade": {"00000000-0000-0000-0000-000000000000": 1}},
        {"reason": ""},
        {"annotator": "somebody"},
        {"withdraws": "00000000-0000-4000-8000-000000000001"},
        {"node_ids": ["00000000-0000-4000-8000-000000000001"]},
        {"more": 1},
    ],
    ids=str,
)
def test_what_is_not_well_formed_writes_nothing(me, api, receipt, change) -> None:
    response = submit(api, receipt, labels({receipt.nodes[0]: True}) | change)
    assert (response.status_code, code_of(response)) == (400, "invalid_request")
    assert written(me) == 0


@pytest.mark.parametrize("grade", [-1, 5, 2.0, True, "3"])
def test_a_grade_is_an_integer_from_0_to_4(me, api, receipt, grade) -> None:
    node = receipt.nodes[0]
    response = submit(api, receipt, labels({node: True}, grade={str(node): grade}))
    assert (response.status_code, code_of(response)) == (400, "invalid_request")


def test_a_node_that_the_receipt_did_not_return_refuses_all(me, api, receipt) -> None:
    response = submit(api, receipt, labels({receipt.nodes[0]: True, uuid4(): False}))
    assert (response.status_code, code_of(response)) == (422, "node_not_in_receipt")
    assert written(me) == 0


def test_in_the_context_a_reference_may_be_judged_and_never_credited(me, api, receipt) -> None:
    content, reference, outside = receipt.nodes[:3]
    refused = {"no_content": {content: True, reference: True}, "not_in_context": {outside: False}}
    for code, given in refused.items():
        response = submit(api, receipt, labels(given, surface="context"))
        assert (response.status_code, code_of(response)) == (422, code)
        assert written(me) == 0
    given = {content: True, reference: False}
    assert submit(api, receipt, labels(given, surface="context")).status_code == 200
    # Among the results the same row may well be relevant.
    assert submit(api, receipt, labels({reference: True, outside: True})).status_code == 200


def test_another_owners_receipt_is_not_there(world, api, receipt) -> None:
    other = make_principal(world.workspace)
    fill(other)
    theirs = keep(other)
    response = submit(api, theirs, labels({theirs.nodes[0]: True}))
    assert (response.status_code, code_of(response)) == (404, "unknown_receipt")
    for path in (f"/v1/receipts/{theirs.id}/judgments", f"/v1/receipts/{uuid4()}/judgments"):
        assert code_of(api.get(path)) == "unknown_receipt"


def test_a_receipt_that_does_not_hold_cannot_be_judged(me, api, receipt) -> None:
    body = labels({receipt.nodes[0]: True})
    with principal_session(me):
        stored = Receipt.objects.get(pk=receipt.id)
        broken = Receipt(**{f.attname: getattr(stored, f.attname) for f in Receipt._meta.local_fields})
        broken.pk, broken.checksum = uuid4(), "0" * 64
        broken.save(force_insert=True)
    response = api.post(f"/v1/receipts/{broken.pk}/judgments", body)
    assert (response.status_code, code_of(response)) == (409, "corrupt_receipt")


# Repetition.


def test_the_same_submission_is_one_record_with_its_first_time(me, api, receipt) -> None:
    a, b = receipt.nodes[:2]
    body = labels({a: True, b: False})
    first = submit(api, receipt, body)
    with clock.frozen(clock.now() + timedelta(days=1)):
        turned = body | {"labels": dict(reversed(body["labels"].items()))}
        assert submit(api, receipt, turned).content == first.content
    with principal_session(me):
        assert Judgment.objects.count() == 1


@pytest.mark.parametrize("change", ["labels", "surface", "method", "receipt", "grade"])
def test_another_submission_under_the_same_id_is_a_conflict(me, api, receipt, change) -> None:
    node, other = receipt.nodes[0], keep(me, in_context=(0,))
    body = labels({node: True})
    assert submit(api, receipt, body).status_code == 200
    changed = {
        "labels": {"labels": {str(node): False}},
        "surface": {"surface": "context"},
        "method": {"method": "structured_evaluation"},
        "grade": {"grade": {str(node): 4}},
        "receipt": {},
    }[change]
    response = submit(api, other if change == "receipt" else receipt, body | changed)
    assert (response.status_code, code_of(response)) == (409, "idempotency_conflict")
    with principal_session(me):
        assert Judgment.objects.count() == 1


def test_a_refused_submission_leaves_its_id_free(me, api, receipt) -> None:
    body = labels({uuid4(): True})
    assert submit(api, receipt, body).status_code == 422
    assert submit(api, receipt, body | {"labels": {str(receipt.nodes[0]): True}}).status_code == 200


def test_nobody_changes_a_record(me, receipt) -> None:
    with principal_session(me):
        judge(receipt.id, {receipt.nodes[0]: True})
    for change in ("UPDATE feedback_judgment SET relevant = '{f}'", "DELETE FROM feedback_judgment"):
        with pytest.raises(DatabaseError), principal_session(me), connection.cursor() as cursor:
            cursor.execute(change)


# Corrections.


def test_a_correction_names_labels_of_the_same_receipt(me, api, receipt) -> None:
    a = receipt.nodes[0]
    other = keep(me)
    with principal_session(me):
        elsewhere = judge(other.id, {other.nodes[0]: True})
        mine = judge(receipt.id, {a: True})
        gone = judge(receipt.id, withdraws=str(mine))
    for target in (uuid4(), elsewhere, gone):
        for body in (
            labels({a: False}, supersedes=str(target)),
            {"feedback_id": str(uuid4()), "withdraws": str(target)},
        ):
            response = submit(api, receipt, body)
            assert (response.status_code, code_of(response)) == (422, "unknown_judgment")
    partly = {"feedback_id": str(uuid4()), "withdraws": str(mine), "node_ids": [str(receipt.nodes[1])]}
    assert code_of(submit(api, receipt, partly)) == "node_not_in_judgment"


def test_a_withdrawal_is_a_record_that_names_what_it_takes_back(me, api, receipt) -> None:
    a, b = receipt.nodes[:2]
    with principal_session(me):
        target = judge(receipt.id, {a: True, b: False}, method="structured_evaluation")
    body = {"feedback_id": str(uuid4()), "withdraws": str(target), "node_ids": [str(b)]}
    first = submit(api, receipt, body)
    shown = json.loads(first.content)
    assert (shown["kind"], shown["node_ids"], shown["labels"]) == ("withdrawal", [str(b)], {})
    assert (shown["withdraws"], shown["method"]) == (str(target), "structured_evaluation")
    assert submit(api, receipt, body).content == first.content


def test_an_annotator_corrects_its_own_and_the_owner_may_take_back_any(me, receipt) -> None:
    a = receipt.nodes[0]
    with principal_session(me):
        annas = judge(receipt.id, {a: True}, by="anna")
        mine = judge(receipt.id, {a: True})
        for wrong in (
            {"given": {a: False}, "supersedes": str(annas)},
            {"given": {a: False}, "supersedes": str(mine), "surface": "context"},
            {"given": {a: False}, "supersedes": str(annas), "by": "ben"},
            {"withdraws": str(mine), "by": "anna"},
            {"withdraws": str(annas), "by": "ben"},
        ):
            with pytest.raises(OtherAnnotator):
                judge(receipt.id, **wrong)
        judge(receipt.id, withdraws=str(annas))
        assert Judgment.objects.count() == 3


@pytest.mark.parametrize("name", ["", "principal", "n" * 151])
def test_an_annotator_has_a_name_of_its_own(me, receipt, name) -> None:
    with principal_session(me), pytest.raises(ValueError, match="name of its own"):
        judge(receipt.id, {receipt.nodes[0]: True}, by=name)


def test_the_order_of_records_holds_when_the_clock_goes_back(me, receipt) -> None:
    a = receipt.nodes[0]
    with clock.frozen(clock.now()) as at, principal_session(me):
        first = judge(receipt.id, {a: True})
        at.advance(timedelta(hours=-1))
        second = judge(receipt.id, {a: False})
        times = dict(Judgment.objects.values_list("feedback_id", "admitted_at"))
    assert times[second] - times[first] == timedelta(microseconds=1)


# Staff.


def submission(given, **more) -> JudgmentRequest:
    return JudgmentRequest.model_validate_json(json.dumps(labels(given, **more)))


def test_staff_judge_under_their_own_name_with_one_audit_entry(world, me, receipt) -> None:
    curator = make_staff(world.workspace, "view_traces", "curate")
    asked = submission({receipt.nodes[0]: True})
    for _ in range(2):
        with staff_session(curator):
            answer = judge_receipt(receipt_id=receipt.id, submission=asked, reason="pooled")
    assert answer["annotator"] == curator.username
    with staff_session(make_staff(world.workspace, "audit")):
        (entry,) = AuditEntry.objects.filter(action="feedback.judge")
    assert (entry.object_id, entry.details["nodes"]) == (str(receipt.id), 1)
    with staff_session(curator), pytest.raises(UnknownReceipt):
        judge_receipt(receipt_id=uuid4(), submission=submission({receipt.nodes[0]: True}))
    with staff_session(make_staff(world.workspace, "view_traces")), pytest.raises(Forbidden):
        judge_receipt(receipt_id=receipt.id, submission=submission({receipt.nodes[0]: True}))
    with principal_session(me):
        assert Judgment.objects.count() == 1


def test_staff_see_records_without_reasons_and_only_by_their_grant(world, me, receipt) -> None:
    with principal_session(me):
        judge(receipt.id, {receipt.nodes[0]: True}, reason="said in confidence")
    with staff_session(make_staff(world.workspace, "view_traces")):
        assert Judgment.objects.defer("reason").get().relevant == [True]
    with staff_session(make_staff(world.workspace, "curate")):
        assert Judgment.objects.count() == 0
    with pytest.raises(DatabaseError), staff_session(make_staff(world.workspace, "view_traces")):
        list(Judgment.objects.values_list("reason"))


def test_a_reason_that_the_filter_refuses_is_not_kept(api, receipt) -> None:
    body = labels({receipt.nodes[0]: True}, reason="password: hunter2hunter2")
    assert json.loads(submit(api, receipt, body).content)["reason"] is None


# Lists.


def listed(api, path="/v1/judgments", **query):
    response = api.get(path, **query)
    assert response.status_code == 200, response.content
    return json.loads(response.content)


def test_lists_are_pages_by_admission_and_narrow_by_each_filter(me, api, receipt) -> None:
    a, b, c = receipt.nodes[:3]
    other = keep(me)
    with principal_session(me):
        ids = [
            judge(receipt.id, {a: True}),
            judge(receipt.id, {b: False}, surface="context"),
            judge(receipt.id, {c: True}, method="structured_evaluation"),
            judge(other.id, {a: False}, by="anna"),
        ]
    names = list(map(str, ids))
    seen, cursor = [], None
    while cursor or not seen:
        page = listed(api, limit=3, **({"cursor": cursor} if cursor else {}))
        seen += [record["feedback_id"] for record in page["judgments"]]
        cursor = page["next_cursor"]
    assert seen == names[::-1]
    narrowed = {
        ("receipt", str(other.id)): {names[3]},
        ("node", str(a)): {names[0], names[3]},
        ("surface", "context"): {names[1]},
        ("method", "structured_evaluation"): {names[2]},
        ("annotator", "anna"): {names[3]},
        ("annotator", "principal"): set(names[:3]),
    }
    for (name, value), expected in narrowed.items():
        assert {r["feedback_id"] for r in listed(api, **{name: value})["judgments"]} == expected, name
    own = listed(api, f"/v1/receipts/{receipt.id}/judgments", node=str(a))
    assert [r["feedback_id"] for r in own["judgments"]] == [names[0]]
    assert (
        code_of(api.get(f"/v1/receipts/{receipt.id}/judgments", receipt=str(other.id))) == "invalid_request"
    )


def test_a_cursor_is_good_for_its_owner_and_listing_alone(world, me, api, receipt) -> None:
    with principal_session(me):
        for node in receipt.nodes[:3]:
            judge(receipt.id, {node: True})
    cursor = listed(api, limit=1)["next_cursor"]
    assert code_of(api.get("/v1/judgments", limit=1, cursor=cursor, surface="results")) == "unknown_cursor"
    assert code_of(api.get(f"/v1/receipts/{receipt.id}/judgments", cursor=cursor)) == "unknown_cursor"
    other = Api(make_principal(world.workspace))
    assert code_of(other.get("/v1/judgments", cursor=cursor)) == "unknown_cursor"
    assert listed(other)["judgments"] == []


def test_a_list_says_which_labels_are_in_force(me, api, receipt) -> None:
    a, b = receipt.nodes[:2]
    with principal_session(me):
        first = judge(receipt.id, {a: True, b: True})
        judge(receipt.id, {b: False}, supersedes=str(first))
    found = listed(api)["judgments"]
    assert [record["in_force"] for record in found] == [[str(b)], [str(a)]]


def test_a_page_costs_the_same_queries_however_long(me, receipt, django_assert_max_num_queries) -> None:
    with principal_session(me):
        for _ in range(5):
            judge(receipt.id, {receipt.nodes[0]: True})
        with django_assert_max_num_queries(2):
            assert len(judgments_page(JudgmentsQuery(limit=50))["judgments"]) == 5


def test_recording_is_a_service_for_the_session_of_a_principal(me, receipt) -> None:
    with principal_session(me):
        answer = record_judgment(receipt_id=receipt.id, submission=submission({receipt.nodes[0]: True}))
    assert answer["labels"] == {str(receipt.nodes[0]): True}
