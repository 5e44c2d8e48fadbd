"""The routes of evaluations, query sets and holdouts."""

import json
from uuid import uuid4

import pytest

from apps.core.db.sessions import principal_session
from apps.learning.models import Evaluation
from apps.learning.services.evaluations import run_evaluation
from tests.support import collection
from tests.support.api import Api, code_of
from tests.support.factories import make_principal, make_world

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

BASE = "/v1/learning"
SET = {
    "name": "small",
    "queries": [
        {"id": "q1", "text": "how is it done", "group": "g", "slice": "s"},
        {"id": "q0", "text": "why"},
    ],
    "judgments": [
        {"query": "q1", "repo": "conn:c", "identity": "d1", "grade": 3},
        {"query": "q1", "repo": "conn:c", "identity": 12, "grade": 0},
        {"query": "q0", "repo": "conn:c", "identity": "d2"},
    ],
}


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def api(world):
    return Api(world.principal, "learning", superuser=world.superuser)


def body(response) -> dict:
    return json.loads(response.content)


def ask(api, path: str, given: dict, key: str = "") -> dict:
    response = api.post(f"{BASE}/{path}", given, **{"Idempotency-Key": key or str(uuid4())})
    assert response.status_code in {201, 202}, response.content
    return body(response)


def run(world, evaluation_id: str) -> None:
    run_evaluation(principal_id=world.principal.principal_id, evaluation_id=evaluation_id)


def test_an_evaluation_is_asked_for_followed_and_read(world, api) -> None:
    collection.judged_collection(world.principal, training=3, validation=3, unseen=0)
    given = {"config": {"min_training_queries": 2, "min_validation_queries": 2}}
    asked = ask(api, "evaluations", given)
    address = f"{BASE}/evaluations/{asked['evaluation_id']}"
    assert (asked["status"], asked["report"], asked["exploratory"]) == ("queued", None, True)
    run(world, asked["evaluation_id"])
    shown = body(api.get(address))
    assert shown["status"] == "succeeded"
    assert shown["report"]["coverage"]["requests_with_pairs"] == 6
    assert {"queries", "feedback_ids", "receipt_checksums"}.isdisjoint(shown["report"])
    full = body(api.get(address, report="full"))
    assert full["report_sha256"] == shown["report_sha256"]
    assert len(full["report"]["queries"]) == 6
    listed = body(api.get(f"{BASE}/evaluations", status="succeeded"))["evaluations"]
    assert [row["result"]["checksum"] for row in listed] == [shown["report_sha256"]]
    assert body(api.get(f"{BASE}/evaluations", status="failed"))["evaluations"] == []


def test_query_groups_come_by_page_and_a_cursor_is_good_for_its_listing_alone(world, api) -> None:
    collection.judged_collection(world.principal, training=3, validation=3, unseen=0)
    given = {"config": {"min_training_queries": 2, "min_validation_queries": 2}}
    first, second = (ask(api, "evaluations", given)["evaluation_id"] for _ in range(2))
    for evaluation_id in (first, second):
        run(world, evaluation_id)
    address = f"{BASE}/evaluations/{first}/queries"
    seen, cursor = [], None
    while True:
        page = body(api.get(address, limit=4, **({"cursor": cursor} if cursor else {})))
        seen += page["queries"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
        elsewhere = api.get(f"{BASE}/evaluations/{second}/queries", cursor=cursor)
        assert code_of(elsewhere) == "unknown_cursor"
    assert [row["group_id"] for row in seen] == sorted({row["group_id"] for row in seen})
    assert len(seen) == 6


def test_one_key_is_one_evaluation_and_another_payload_conflicts(api, world) -> None:
    first, again = (ask(api, "evaluations", {"scopes": ["a"]}, "key") for _ in range(2))
    assert first == again
    other = api.post(f"{BASE}/evaluations", {"scopes": ["b"]}, **{"Idempotency-Key": "key"})
    assert (other.status_code, code_of(other)) == (409, "idempotency_conflict")
    neither = api.post(f"{BASE}/evaluations", {})
    assert (neither.status_code, code_of(neither)) == (400, "invalid_request")
    with principal_session(world.principal):
        assert Evaluation.objects.count() == 1


def test_cancelling_ends_what_nobody_began_once_and_what_has_ended_not_at_all(api, world) -> None:
    waiting = ask(api, "evaluations", {})["evaluation_id"]
    for _ in range(2):
        stopped = api.post(f"{BASE}/evaluations/{waiting}/cancel", {})
        assert (stopped.status_code, body(stopped)["status"]) == (202, "cancelled")
    run(world, waiting)
    assert body(api.get(f"{BASE}/evaluations/{waiting}"))["status"] == "cancelled"
    done = ask(api, "evaluations", {})["evaluation_id"]
    run(world, done)
    ended = api.post(f"{BASE}/evaluations/{done}/cancel", {})
    assert (ended.status_code, code_of(ended)) == (409, "already_ended")


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"config": {"min_validation_queries": 1}}, "/config/min_validation_queries"),
        ({"config": {"seed": 1.5}}, "/config/seed"),
        ({"scopes": ["Not A Slug"]}, "/scopes/0"),
        ({"surface": "both"}, "/surface"),
        ({"query_groups": {"x": "y"}}, "/query_groups/x"),
        ({"query_groups": {str(uuid4()): "  "}}, None),
        ({"decision": "improved_on_observed_candidates"}, "/decision"),
        ({"multipliers": {}}, "/multipliers"),
        ({"report": {}}, "/report"),
    ],
)
def test_what_is_not_well_formed_is_refused_and_no_result_can_be_handed_in(api, given, pointer) -> None:
    refused = api.post(f"{BASE}/evaluations", {"idempotency_key": "k"} | given)
    assert (refused.status_code, code_of(refused)) == (400, "invalid_request")
    if pointer:
        assert body(refused)["pointer"] == pointer


def test_a_query_set_is_made_once_and_shown_by_its_ids(api) -> None:
    made = ask(api, "query-sets", SET)
    assert (made["queries_total"], made["judgments_total"], made["source"]) == (2, 3, "api")
    assert [query["id"] for query in made["queries"]] == ["q0", "q1"]
    assert made["queries"][1]["judgments"] == [
        {"repo": "conn:c", "identity": "d1", "grade": 3},
        {"repo": "conn:c", "identity": 12, "grade": 0},
    ]
    turned = SET | {name: list(reversed(SET[name])) for name in ("queries", "judgments")}
    other = ask(api, "query-sets", turned)
    assert other["content_sha256"] == made["content_sha256"]
    page = body(api.get(f"{BASE}/query-sets/{made['query_set_id']}", limit=1))
    assert [query["id"] for query in page["queries"]] == ["q0"]
    rest = body(api.get(f"{BASE}/query-sets/{made['query_set_id']}", cursor=page["next_cursor"]))
    assert [query["id"] for query in rest["queries"]] == ["q1"]
    assert len(body(api.get(f"{BASE}/query-sets"))["query_sets"]) == 2


def _with(queries=None, judgments=None) -> dict:
    return SET | {
        "queries": [*SET["queries"], *(queries or [])],
        "judgments": [*SET["judgments"], *(judgments or [])],
    }


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        (_with(queries=[{"id": "q1", "text": "again"}]), "/queries/2/id"),
        (_with(queries=[{"id": "q2", "text": "unjudged"}]), "/queries/2"),
        (_with(judgments=[{"query": "q9", "repo": "r", "identity": "d"}]), "/judgments/3/query"),
        (_with(judgments=[SET["judgments"][0]]), "/judgments/3"),
        (_with(judgments=[{"query": "q1", "repo": "r", "identity": "d", "grade": 5}]), "/judgments/3/grade"),
        (
            _with(
                queries=[{"id": "q2", "text": "  WHY ", "group": "other"}],
                judgments=[{"query": "q2", "repo": "r", "identity": "d"}],
            ),
            "/queries/2/group",
        ),
        (
            _with(
                queries=[{"id": "q2", "text": "password: hunter2hunter2"}],
                judgments=[{"query": "q2", "repo": "r", "identity": "d"}],
            ),
            "/queries/2/text",
        ),
    ],
)
def test_a_query_set_that_does_not_hold_together_is_refused_with_its_place(api, given, pointer) -> None:
    refused = api.post(f"{BASE}/query-sets", given | {"idempotency_key": "k"})
    assert (refused.status_code, body(refused).get("pointer")) == (400, pointer)
    assert "hunter2" not in refused.content.decode()


def test_what_is_anothers_is_as_what_is_not(world, api) -> None:
    other = make_principal(world.workspace)
    theirs = Api(other, "learning", superuser=world.superuser)
    evaluation_id = ask(theirs, "evaluations", {})["evaluation_id"]
    set_id = ask(theirs, "query-sets", SET)["query_set_id"]
    mine = ask(api, "query-sets", SET)["query_set_id"]
    for given, code in (
        ({"evaluation_id": evaluation_id, "query_set_id": mine}, "unknown_evaluation"),
        (
            {"evaluation_id": ask(api, "evaluations", {})["evaluation_id"], "query_set_id": set_id},
            "unknown_query_set",
        ),
    ):
        refused = api.post(f"{BASE}/holdouts", given | {"idempotency_key": str(uuid4())})
        assert (refused.status_code, code_of(refused)) == (404, code)


def test_a_holdout_names_a_query_set_or_trials_and_never_both(api) -> None:
    for given in ({}, {"query_set_id": str(uuid4()), "trials": []}):
        refused = api.post(
            f"{BASE}/holdouts", {"evaluation_id": str(uuid4()), "idempotency_key": "k"} | given
        )
        assert refused.status_code == 400
