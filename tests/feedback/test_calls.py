"""Bodies of mutating calls: what is refused, in which order, and what a repeated call answers."""

import json

import pytest

from apps.core.db.sessions import principal_session
from tests.support.api import Api, code_of
from tests.support.traces import issue, ranked, save, source_of

pytestmark = pytest.mark.django_db
SOURCE = source_of(issue(7))


@pytest.fixture
def api(world):
    return Api(world.principal)


@pytest.fixture
def trace(world):
    with principal_session(world.principal):
        return save([ranked(issue(7))])


def uses(*stages, **more):
    return {
        "idempotency_key": "k1",
        "uses": [{"source_id": SOURCE, "stage": stage} for stage in stages],
    } | more


def test_a_repeated_call_answers_byte_for_byte_in_any_order_of_members(api, trace) -> None:
    first = api.post(f"/v1/traces/{trace.id}/uses", uses("selected", "validated"))
    assert first.status_code == 200
    turned = dict(reversed(uses("selected", "validated").items()))
    assert api.post(f"/v1/traces/{trace.id}/uses", turned).content == first.content
    other = api.post(f"/v1/traces/{trace.id}/uses", uses("validated", "selected"))
    assert (other.status_code, code_of(other)) == (409, "idempotency_conflict")


def test_the_key_comes_in_the_body_or_as_header_not_both(api, trace) -> None:
    call = uses("selected")
    both = api.post(f"/v1/traces/{trace.id}/uses", call, **{"Idempotency-Key": "k1"})
    assert code_of(both) == "invalid_memory_request"
    call.pop("idempotency_key")
    assert code_of(api.post(f"/v1/traces/{trace.id}/uses", call)) == "invalid_memory_request"
    assert api.post(f"/v1/traces/{trace.id}/uses", call, **{"Idempotency-Key": "k1"}).status_code == 200


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (uses(), "/uses"),
        (uses(*["selected"] * 101), "/uses"),
        (uses("retrieved"), "/uses/0/stage"),
        (uses("selected", idempotency_key=""), "/idempotency_key"),
        (uses("selected", idempotency_key="k" * 129), "/idempotency_key"),
        (uses("selected", idempotency_key=None), "/idempotency_key"),
        (uses("selected", idempotency_key="a\x00b"), "/idempotency_key"),
        (uses("selected", more=1), "/more"),
        ({"idempotency_key": "k", "uses": [{"source_id": None, "stage": "selected"}]}, "/uses/0/source_id"),
    ],
)
def test_what_is_not_well_formed_is_refused_with_a_pointer(api, trace, body, pointer) -> None:
    response = api.post(f"/v1/traces/{trace.id}/uses", body)
    assert (response.status_code, code_of(response)) == (400, "invalid_memory_request")
    assert json.loads(response.content)["pointer"] == pointer


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"a": NaN}', b'{"a": "\\ud800"}', b"\xff", b"null"])
def test_what_is_no_json_object_is_refused(api, trace, body) -> None:
    response = api.post(f"/v1/traces/{trace.id}/outcomes", body)
    assert (response.status_code, code_of(response)) == (400, "invalid_memory_request")


def test_the_schema_comes_before_the_key_and_the_key_before_the_trace(api, trace) -> None:
    assert api.post(f"/v1/traces/{trace.id}/uses", uses("selected")).status_code == 200
    bad = api.post("/v1/traces/none/uses", uses("selected", more=1))
    assert code_of(bad) == "invalid_memory_request"
    used = api.post("/v1/traces/none/uses", uses("selected"))
    assert code_of(used) == "idempotency_conflict"
    fresh = api.post("/v1/traces/none/uses", uses("selected", idempotency_key="k2"))
    assert (fresh.status_code, code_of(fresh)) == (404, "unknown_trace")


def test_keys_are_shared_by_uses_and_outcomes(api, trace) -> None:
    api.post(f"/v1/traces/{trace.id}/uses", uses("selected"))
    outcome = {"idempotency_key": "k1", "outcome": "confirmed", "source_ids": [SOURCE], "reason": "r"}
    assert code_of(api.post(f"/v1/traces/{trace.id}/outcomes", outcome)) == "idempotency_conflict"


@pytest.mark.parametrize(
    "more", [{"source_ids": None}, {"confirmation_id": None}, {"reason": ""}, {"reason": "r" * 1001}]
)
def test_null_is_no_absence_and_a_reason_is_needed(api, trace, more) -> None:
    call = {"idempotency_key": "k", "outcome": "confirmed", "reason": "r"} | more
    response = api.post(f"/v1/traces/{trace.id}/outcomes", call)
    assert code_of(response) == "invalid_memory_request"


def test_a_reason_that_the_filter_refuses_is_neither_kept_nor_shown(api, trace) -> None:
    api.post(f"/v1/traces/{trace.id}/uses", uses("selected", "validated", "used"))
    call = {
        "idempotency_key": "k2",
        "outcome": "confirmed",
        "source_ids": [SOURCE],
        "reason": "password: hunter2hunter2",
    }
    first = api.post(f"/v1/traces/{trace.id}/outcomes", call)
    assert json.loads(first.content)["reason"] is None
    assert api.post(f"/v1/traces/{trace.id}/outcomes", call).content == first.content


def test_refusals_and_logs_repeat_nothing_that_was_sent(api, trace, caplog) -> None:
    secrets = {"source_id": "s:secret-source", "key": "secret-key", "reason": "secret-reason"}
    calls = [
        (
            "uses",
            {
                "idempotency_key": secrets["key"],
                "uses": [{"source_id": secrets["source_id"], "stage": "selected"}],
            },
        ),
        ("uses", {"idempotency_key": secrets["key"], "uses": [{"source_id": SOURCE, "stage": "used"}]}),
        (
            "outcomes",
            {
                "idempotency_key": secrets["key"],
                "outcome": "confirmed",
                "source_ids": [SOURCE],
                "reason": secrets["reason"],
            },
        ),
        (
            "outcomes",
            {"idempotency_key": secrets["key"], "outcome": "corrected", "reason": secrets["reason"]},
        ),
        ("outcomes", {"outcome": secrets["reason"]}),
    ]
    caplog.set_level("DEBUG", logger="apps")
    for route, call in calls:
        response = api.post(f"/v1/traces/{trace.id}/{route}", call)
        assert response.status_code >= 400
        for secret in (*secrets.values(), SOURCE):
            assert secret.encode() not in response.content
            assert secret not in caplog.text
