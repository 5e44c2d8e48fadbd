"""History: newest first, exactly once, nobody else's."""

import json
from datetime import timedelta

import pytest

from apps.core import clock
from apps.core.db.sessions import principal_session
from apps.core.ids import uuid7
from tests.support.api import Api, code_of
from tests.support.factories import make_principal
from tests.support.traces import climb, graph_row, issue, page, ranked, save, source_of, walk

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(world):
    return Api(world.principal)


def body(response):
    assert response.status_code == 200, response.content
    return json.loads(response.content)


def some_traces(world, count=3):
    saved = []
    with principal_session(world.principal):
        start = clock.now() - timedelta(hours=1)
        for number in range(count):
            saved.append(save([ranked(issue(7))], recorded_at=start + timedelta(minutes=number)))
    return saved


def test_pages_go_from_the_newest_to_the_oldest(world, api) -> None:
    saved = some_traces(world)
    first = body(api.get("/v1/traces", limit=1))
    assert [trace["trace_id"] for trace in first["traces"]] == [str(saved[2].id)]
    second = body(api.get("/v1/traces", limit=1, cursor=first["next_cursor"]))
    assert [trace["trace_id"] for trace in second["traces"]] == [str(saved[1].id)]
    third = body(api.get("/v1/traces", limit=1, cursor=second["next_cursor"]))
    assert [trace["trace_id"] for trace in third["traces"]] == [str(saved[0].id)]
    assert third["next_cursor"] is None


@pytest.mark.parametrize(
    "query",
    [{"limit": 51}, {"limit": 0}, {"limit": "x"}, {"unknown": 1}, {"mode": "none"}, {"since": "2026-01-01"}],
)
def test_arguments_out_of_bounds_are_refused(api, query) -> None:
    response = api.get("/v1/traces", **query)
    assert (response.status_code, code_of(response)) == (400, "invalid_memory_request")


def test_a_walk_returns_each_row_once_whatever_arrives(world, api) -> None:
    saved = some_traces(world, 5)
    seen, cursor = [], None
    while True:
        page_ = body(api.get("/v1/traces", limit=2, **({"cursor": cursor} if cursor else {})))
        seen += [trace["trace_id"] for trace in page_["traces"]]
        with principal_session(world.principal):
            save([])
        cursor = page_["next_cursor"]
        if cursor is None:
            break
    assert seen == [str(trace.id) for trace in reversed(saved)]


def test_an_item_says_what_was_recorded_and_how_long_it_is_kept(world, api) -> None:
    with clock.frozen(clock.now()) as at, principal_session(world.principal):
        saved = save([ranked(issue(7))])
    (item,) = body(api.get("/v1/traces"))["traces"]
    assert item["timestamp"] == clock.iso(at.at)
    assert item["query"] == "how do pages mention each other"
    assert item["settings"]["memory_recording"]["status"] == "complete"
    assert item["retention"] == {"class": "trace", "expires_at": clock.iso(saved.expires_at)}


def test_a_zero_hit_has_no_sources(world, api) -> None:
    with principal_session(world.principal):
        saved = save([])
    detail = body(api.get(f"/v1/traces/{saved.id}"))
    assert (detail["sources"], detail["audit"], detail["source_count"]) == ([], [], 0)


def test_another_principal_gets_what_an_invented_id_gets(world, api) -> None:
    saved = some_traces(world)
    cursor = body(api.get("/v1/traces", limit=1))["next_cursor"]
    other = Api(make_principal(world.workspace))
    answers = []
    for trace_id in (saved[0].id, uuid7(), "not-an-id"):
        detail = other.get(f"/v1/traces/{trace_id}")
        use = other.post(
            f"/v1/traces/{trace_id}/uses",
            {"idempotency_key": "k", "uses": [{"source_id": source_of(issue(7)), "stage": "selected"}]},
        )
        gone = other.delete(f"/v1/traces/{trace_id}")
        assert {detail.status_code, use.status_code, gone.status_code} == {404}
        answers.append((detail.content, use.content, gone.content))
    assert len(set(answers)) == 1
    foreign = other.get("/v1/traces", cursor=cursor)
    assert (foreign.status_code, code_of(foreign)) == (400, "unknown_cursor")
    assert foreign.content == other.get("/v1/traces", cursor="invented").content


def test_the_detail_pages_its_audit_and_shows_credits(world, api) -> None:
    with principal_session(world.principal):
        saved = save([graph_row(page("c"), [walk("a", "b", "c")])])
        climb(saved.id, source_of(page("c")))
    confirm = body(
        api.post(
            f"/v1/traces/{saved.id}/outcomes",
            {
                "idempotency_key": "c",
                "outcome": "confirmed",
                "source_ids": [source_of(page("c"))],
                "reason": "r",
            },
        )
    )
    first = body(api.get(f"/v1/traces/{saved.id}", limit=2))
    assert [receipt["kind"] for receipt in first["audit"]] == ["use", "confirmed"]
    assert first["next_cursor"] is None
    assert [credit["active"] for credit in first["audit"][1]["active_credits"]] == [True, True]
    assert first["sources"][0]["stage"] == "used"
    assert first["sources"][0]["activation"]["label"] == "current"
    reversal = {
        "idempotency_key": "r",
        "outcome": "corrected",
        "confirmation_id": confirm["receipt_id"],
        "reason": "r",
    }
    body(api.post(f"/v1/traces/{saved.id}/outcomes", reversal))
    again = body(api.get(f"/v1/traces/{saved.id}", limit=2))
    assert again["next_cursor"] is not None
    assert [credit["active"] for credit in again["audit"][1]["active_credits"]] == [False, False]
    last = body(api.get(f"/v1/traces/{saved.id}", limit=2, cursor=again["next_cursor"]))
    assert [receipt["kind"] for receipt in last["audit"]] == ["corrected"]
    elsewhere = api.get("/v1/traces", cursor=again["next_cursor"])
    assert code_of(elsewhere) == "unknown_cursor"


def test_learned_edges_and_activation_are_shown_as_of_now(world, api) -> None:
    with principal_session(world.principal):
        saved = save([graph_row(page("c"), [walk("a", "b", "c")])])
        climb(saved.id, source_of(page("c")))
    call = {"outcome": "confirmed", "source_ids": [source_of(page("c"))], "reason": "r"}
    api.post(f"/v1/traces/{saved.id}/outcomes", call, **{"Idempotency-Key": "c"})
    edges = body(api.get("/v1/learned-edges", limit=1))
    assert len(edges["edges"]) == 1
    assert edges["next_cursor"]
    assert edges["edges"][0]["active_credits"] == 1
    assert edges["edges"][0]["strength"] == pytest.approx(0.25, abs=1e-3)
    known, unknown = source_of(page("c")), source_of(page("zzz"))
    shown = body(api.get("/v1/activation", source_id=[known, unknown]))["activation"]
    by_id = {entry["source_id"]: entry for entry in shown}
    assert by_id[known]["usage"] == pytest.approx(1.7, abs=1e-2)
    assert (by_id[unknown]["total"], by_id[unknown]["updated_at"]) == (0, None)
    assert code_of(api.get("/v1/activation")) == "invalid_memory_request"


def test_every_route_needs_its_scope(world) -> None:
    searcher = Api(world.principal, "search")
    for path in ("/v1/traces", f"/v1/traces/{uuid7()}", "/v1/learned-edges", "/v1/activation"):
        assert searcher.get(path).status_code == 403
