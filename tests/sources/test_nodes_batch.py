"""Import over HTTP: a result for each item, and the source that it became."""

import json

import pytest

from apps.core.db.sessions import principal_session
from apps.graph.models import Node
from tests.support.factories import make_principal, make_token, make_world

pytestmark = pytest.mark.django_db(transaction=True)

ISSUE = {
    "identity": 7,
    "type": "issue",
    "repo": "acme/app",
    "text": "Wings",
    "updated_at": "2026-01-02T03:04:05Z",
}


@pytest.fixture
def world():
    return make_world()


def post(client, body, token):
    return client.post(
        "/v1/nodes:batch",
        data=body if isinstance(body, str) else json.dumps(body),
        content_type="application/json",
        headers={"Authorization": f"Bearer {token}"},
    )


def test_items_are_stored_and_named(client, world) -> None:
    token = make_token(world.principal, "memory")
    answer = post(client, {"items": [ISSUE, {"identity": "a", "text": "A document"}]}, token)
    assert answer.status_code == 200
    first, second = answer.json()["results"]
    assert first["source_id"] == "s:cf43b2901f0426bb61eef3c7112e3a82f5a9d42ba4e66cde8146b64a11a22403"
    assert (first["index"], first["result"]) == (0, "created")
    assert second["source_id"].startswith("s:")
    again = post(client, {"items": [ISSUE]}, token).json()["results"][0]
    assert (again["result"], again["node_id"]) == ("unchanged", first["node_id"])


def test_one_bad_item_does_not_sink_the_batch(client, world) -> None:
    token = make_token(world.principal, "memory")
    items = [
        {"identity": "a", "text": "good"},
        {"identity": "b"},
        {"identity": "c", "text": "t", "surprise": 1},
        {"identity": "d", "text": "x" * 10_001},
        {"identity": "e", "text": "t", "event_at": "2026-01-01T00:00:00"},
        {"identity": True, "text": "t"},
        {"identity": "f", "text": "t", "type": "memory_node"},
        {"identity": "g", "text": "good, too"},
    ]
    results = post(client, {"items": items}, token).json()["results"]
    assert [result["result"] for result in results] == ["created", *["error"] * 6, "created"]
    assert [results[n]["error"]["code"] for n in (1, 3)] == ["invalid_item", "text_too_long"]
    assert results[2]["error"]["pointer"] == "/surprise"
    assert results[4]["error"]["pointer"] == "/event_at"
    with principal_session(world.principal):
        assert Node.objects.count() == 2


def test_a_row_without_a_canonical_identity_is_stored_without_a_source(client, world) -> None:
    token = make_token(world.principal, "memory")
    unversioned = {"identity": 7, "type": "issue", "repo": "acme/app", "text": "no updated_at"}
    (result,) = post(client, {"items": [unversioned]}, token).json()["results"]
    assert result["result"] == "created"
    assert "source_id" not in result


@pytest.mark.parametrize(
    "body", [{"items": []}, {"items": [ISSUE] * 501}, {}, {"items": [1]}, "[", '{"items": NaN}']
)
def test_malformed_batches_are_refused_whole(client, world, body) -> None:
    answer = post(client, body, make_token(world.principal, "memory"))
    assert answer.status_code == 400


def test_the_scope_is_needed_and_rows_are_the_callers(client, world) -> None:
    assert post(client, {"items": [ISSUE]}, make_token(world.principal, "search")).status_code == 403
    other = make_principal(world.workspace)
    post(client, {"items": [ISSUE]}, make_token(other, "memory"))
    with principal_session(world.principal):
        assert not Node.objects.exists()
