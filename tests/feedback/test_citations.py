"""Citations: what an answer may cite, the three states, and that they rank nothing."""

import json
from uuid import UUID, uuid4

import pytest

from apps.core.db.sessions import principal_session
from apps.core.models import IdempotencyKey
from apps.feedback.models import CitationSet
from apps.feedback.selectors import citations_state
from apps.graph.services import delete_passages
from apps.retrieval.models import Receipt
from tests.support.api import code_of
from tests.support.factories import make_principal
from tests.support.labels import CONTEXT, fill, keep

pytestmark = pytest.mark.django_db


@pytest.fixture
def receipt(me):
    """Places 0 to 2 are in the context, 2 as a reference."""
    return keep(me, in_context=(0, 1, 2), references=(2,))


def citing(*nodes, **more):
    return {
        "citation_id": str(uuid4()),
        "answer_id": "answer-7",
        "answer_sha256": None,
        "method": "model_reported",
        "cited_node_ids": [str(node) for node in nodes],
    } | more


def submit(api, receipt, body):
    return api.post(f"/v1/receipts/{receipt.id}/citations", body)


def state(principal, receipt):
    with principal_session(principal):
        return citations_state(receipt.id).state


def test_a_set_binds_the_receipt_and_its_context(me, api, receipt) -> None:
    body = citing(receipt.nodes[1], receipt.nodes[0], answer_sha256="a" * 64)
    response = submit(api, receipt, body)
    assert response.status_code == 200, response.content
    shown = json.loads(response.content)
    with principal_session(me):
        assert shown["receipt_checksum"] == Receipt.objects.get(pk=receipt.id).checksum
    assert shown["context_sha256"] == CONTEXT
    assert {name: shown[name] for name in body} == body
    assert submit(api, receipt, body).content == response.content
    for change in ({"answer_id": "other"}, {"answer_sha256": None}, {"cited_node_ids": []}):
        again = submit(api, receipt, body | change)
        assert (again.status_code, code_of(again)) == (409, "idempotency_conflict")
    with principal_session(me):
        assert CitationSet.objects.count() == 1


def test_no_report_and_a_report_of_nothing_and_citations_are_three_states(me, api, receipt) -> None:
    assert state(me, receipt) == "none_reported"
    assert submit(api, receipt, citing()).status_code == 200
    assert state(me, receipt) == "reported_none"
    for nodes in (receipt.nodes[:1], receipt.nodes[:2]):
        submit(api, receipt, citing(*nodes, method="human_verified"))
    assert state(me, receipt) == "cited"
    listed = json.loads(api.get(f"/v1/receipts/{receipt.id}/citations", limit=2).content)
    assert listed["state"] == {
        "state": "cited",
        "sets": 3,
        "cited_node_ids": [str(node) for node in receipt.nodes[:2]],
    }
    assert [len(each["cited_node_ids"]) for each in listed["citations"]] == [2, 1]
    rest = api.get(f"/v1/receipts/{receipt.id}/citations", limit=2, cursor=listed["next_cursor"])
    assert [each["cited_node_ids"] for each in json.loads(rest.content)["citations"]] == [[]]


def test_only_entries_with_content_are_cited_and_one_bad_one_refuses_all(me, api, receipt) -> None:
    content, _, reference, outside = receipt.nodes
    for bad, code in (
        (reference, "no_content"),
        (outside, "not_in_context"),
        (uuid4(), "node_not_in_receipt"),
    ):
        response = submit(api, receipt, citing(content, bad))
        assert (response.status_code, code_of(response)) == (422, code)
        assert json.loads(response.content)["pointer"] == "/cited_node_ids/1"
    with principal_session(me):
        assert not CitationSet.objects.exists()
        assert not IdempotencyKey.objects.exists()


def test_a_receipt_without_a_context_has_nothing_to_cite(me, api) -> None:
    results = keep(me)
    for nodes in ((), results.nodes[:1]):
        response = submit(api, results, citing(*nodes))
        assert (response.status_code, code_of(response)) == (422, "not_in_context")


@pytest.mark.parametrize(
    "change",
    [
        {"citation_id": "7"},
        {"answer_id": ""},
        {"answer_id": "a" * 513},
        {"answer_sha256": "A" * 64},
        {"method": "guessed"},
        {"cited_node_ids": None},
        {"cited_node_ids": ["no id"]},
        {"cited_node_ids": [str(UUID(int=1))] * 2},
        {"cited_node_ids": [str(UUID(int=n)) for n in range(1001)]},
        {"more": 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_is_not_well_formed_is_refused(api, receipt, change) -> None:
    response = submit(api, receipt, citing() | change)
    assert (response.status_code, code_of(response)) == (400, "invalid_request")
    assert json.loads(response.content)["pointer"].startswith("/" + next(iter(change)))


@pytest.mark.parametrize("name", citing())
def test_every_member_is_needed(api, receipt, name) -> None:
    body = citing()
    del body[name]
    assert code_of(submit(api, receipt, body)) == "invalid_request"


def test_it_stays_readable_when_its_nodes_are_gone(me, api, receipt) -> None:
    body = citing(receipt.nodes[0])
    first = submit(api, receipt, body)
    with principal_session(me):
        assert delete_passages(node_ids=list(receipt.nodes)) == 4
    assert submit(api, receipt, body).content == first.content
    assert state(me, receipt) == "cited"


def test_another_owners_receipt_is_not_there(world, api, receipt) -> None:
    other = make_principal(world.workspace)
    fill(other)
    theirs = keep(other, in_context=(0,))
    assert code_of(submit(api, theirs, citing())) == "unknown_receipt"
    assert code_of(api.get(f"/v1/receipts/{theirs.id}/citations")) == "unknown_receipt"
