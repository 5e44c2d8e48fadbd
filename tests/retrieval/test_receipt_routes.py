"""The routes of receipts: listed, shown as stored, replayed, and never another's."""

import hashlib
import json

import pytest
from django.test import Client

from apps.core import canonical
from tests.support.factories import make_principal, make_token, make_world
from tests.support.library import ask, store, wiki

pytestmark = pytest.mark.django_db


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def me(world):
    return world.principal


@pytest.fixture
def client(me):
    return api(me)


def api(principal) -> Client:
    return Client(headers={"Authorization": f"Bearer {make_token(principal, 'feedback')}"})


@pytest.fixture
def answers(me):
    store(me, *(wiki(f"page-{n}", f"Rollback of billing {'again ' * n}") for n in range(3)))
    return [ask(me, query) for query in ("billing", "rollback", "billing rollback")]


def test_a_list_is_newest_first_and_walks_by_cursor(client, answers) -> None:
    ids = [answer["retrieval_receipt_id"] for answer in reversed(answers)]
    page = client.get("/v1/receipts?limit=2").json()
    assert [row["receipt_id"] for row in page["receipts"]] == ids[:2]
    rest = client.get(f"/v1/receipts?limit=2&cursor={page['next_cursor']}").json()
    assert [row["receipt_id"] for row in rest["receipts"]] == ids[2:]
    assert rest["next_cursor"] is None
    first = page["receipts"][0]
    assert first["query"]["trace_id"] == answers[-1]["trace_id"]
    assert first["candidates"] == 3
    assert first["profile"] == {"id": None, "status": "none"}
    assert "billing" not in json.dumps(page)


def test_a_list_is_narrowed_by_time_and_profile(client, me, answers) -> None:
    overridden = ask(me, "billing", ranking_multipliers={"lexical": 2.0})
    found = client.get("/v1/receipts?profile=request_override").json()["receipts"]
    assert [row["receipt_id"] for row in found] == [overridden["retrieval_receipt_id"]]
    at = answers[1]["timestamp"]
    assert len(client.get("/v1/receipts", {"since": at}).json()["receipts"]) == 3
    assert len(client.get("/v1/receipts", {"until": at}).json()["receipts"]) == 1


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("limit=51", "/limit"),
        ("limit=ten", "/limit"),
        ("since=2026-01-01T00:00:00", "/since"),
        ("profile=some", "/profile"),
        ("surprise=1", "/surprise"),
        ("limit=1&limit=2", "/limit"),
    ],
)
def test_a_query_that_is_none_is_refused_by_name(client, query, pointer) -> None:
    refused = client.get(f"/v1/receipts?{query}")
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_request")
    assert refused.json()["pointer"] == pointer


def test_a_cursor_is_good_for_its_owner_and_filters_alone(world, client, answers) -> None:
    cursor = client.get("/v1/receipts?limit=1").json()["next_cursor"]
    for other, more in ((api(make_principal(world.workspace)), ""), (client, "&profile=none")):
        assert other.get(f"/v1/receipts?cursor={cursor}{more}").json()["code"] == "unknown_cursor"


def test_a_receipt_is_shown_as_it_was_stored(client, answers) -> None:
    receipt_id = answers[0]["retrieval_receipt_id"]
    shown = client.get(f"/v1/receipts/{receipt_id}")
    body = shown.json()
    assert canonical.dumps(body) == shown.content
    assert hashlib.sha256(canonical.dumps(body["receipt"])).hexdigest() == body["checksum"]
    assert (body["receipt_id"], body["trace_id"]) == (receipt_id, answers[0]["trace_id"])


def test_a_replay_says_score_by_score_that_it_holds(client, answers) -> None:
    verdict = client.get(f"/v1/receipts/{answers[0]['retrieval_receipt_id']}/replay").json()
    assert (verdict["verified"], verdict["drifted"], verdict["order_equal"]) == (True, 0, True)
    assert [row["recorded"] for row in verdict["scores"]] == [row["score"] for row in answers[0]["results"]]
    assert all(row["recorded"] == row["replayed"] for row in verdict["scores"])


def test_a_foreign_one_is_answered_like_one_that_is_not(world, answers) -> None:
    other = api(make_principal(world.workspace))
    for tail in ("", "/replay"):
        theirs, none, bad = (
            other.get(f"/v1/receipts/{name}{tail}")
            for name in (answers[0]["retrieval_receipt_id"], "0" * 8 + "-0000-7000-8000-" + "0" * 12, "x")
        )
        assert theirs.status_code == 404
        assert theirs.json()["code"] == "unknown_receipt"
        assert theirs.content == none.content == bad.content
