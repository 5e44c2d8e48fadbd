"""The search route: what it refuses, what it answers, what it never repeats."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from apps.core.db.sessions import principal_session
from apps.search.schemas import SearchFilters
from apps.search.services import search as searched
from apps.traces.models import Activation, Trace
from tests.support.api import Api, code_of
from tests.support.factories import make_principal, make_world
from tests.support.library import CHAIN, store, thread

pytestmark = pytest.mark.django_db


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def api(world):
    return Api(world.principal)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"limit": 0}, "/limit"),
        ({"limit": -1}, "/limit"),
        ({"limit": 51}, "/limit"),
        ({"limit": 2.9}, "/limit"),
        ({"limit": "10"}, "/limit"),
        ({"limit": None}, "/limit"),
        ({"query": None}, "/query"),
        ({"query": "q" * 4097}, "/query"),
        ({"query": "a\x00b"}, "/query"),
        ({"node_ids": []}, "/node_ids"),
        ({"node_ids": ["x"]}, "/node_ids/0"),
        ({"scopes": []}, "/scopes"),
        ({"scopes": ["Not A Slug"]}, "/scopes/0"),
        ({"scopes": [f"s{n}" for n in range(17)]}, "/scopes"),
        ({"filters": {"unknown": 1}}, "/filters/unknown"),
        ({"filters": {"since": "2026-01-01T00:00:00"}}, "/filters/since"),
        ({"filters": {"path_prefix": "docs"}}, "/filters/path_prefix"),
        ({"filters": {"path_prefix": "/docs/"}}, "/filters/path_prefix"),
        ({"filters": {"path_prefix": "docs/../"}}, "/filters/path_prefix"),
        ({"filters": {"path_prefix": "d" * 64 + "/"}}, "/filters/path_prefix"),
        ({"filters": {"labels": ["l"] * 51}}, "/filters/labels"),
        ({"filters": {"repository": "r" * 257}}, "/filters/repository"),
        ({"graph_hops": 3}, "/graph_hops"),
        ({"ranking_multipliers": {"lexical": 0.2499}}, "/ranking_multipliers/lexical"),
        ({"ranking_multipliers": {"lexical": 4.0001}}, "/ranking_multipliers/lexical"),
        ({"ranking_multipliers": {"lexical": -1}}, "/ranking_multipliers/lexical"),
        ({"ranking_multipliers": {"lexical": True}}, "/ranking_multipliers/lexical"),
        ({"ranking_multipliers": {"other": 1}}, None),
        ({"limit": [10]}, "/limit"),
        ({"limit": True}, "/limit"),
        ({"reference_time": "2026-01-01T00:00:00"}, "/reference_time"),
        ({"filters": {"valid_since": "2026-01-01T00:00:00"}}, "/filters/valid_since"),
        ({"filters": {"known_at": "2026-01-01"}}, "/filters/known_at"),
        ({"filters": {"repository": "a\x00b"}}, "/filters/repository"),
        ({"filters": {"labels": ["a\x00b"]}}, "/filters/labels/0"),
        ({"filters": {"since": "2026-01-02T00:00:00Z", "until": "2026-01-02T00:00:00Z"}}, None),
        ({"filters": {"valid_since": "2026-01-02T00:00:00Z", "valid_until": "2026-01-01T00:00:00Z"}}, None),
        ({"min_score": -0.1}, "/min_score"),
        ({"min_score": "0.1"}, "/min_score"),
        ({"max_per_source": 0}, "/max_per_source"),
        ({"max_per_source": 51}, "/max_per_source"),
        ({"epistemic_mode": "all"}, "/epistemic_mode"),
        ({"include_cross_scope": 1}, "/include_cross_scope"),
        ({"corpus": "mine"}, "/corpus"),
        ({"more": 1}, "/more"),
    ],
)
def test_what_is_out_of_bounds_is_refused_with_a_pointer_and_leaves_nothing(
    world, api, body, pointer
) -> None:
    response = api.post("/v1/search", {"query": "billing"} | body)
    assert (response.status_code, code_of(response)) == (400, "invalid_memory_request")
    if pointer:
        assert json.loads(response.content)["pointer"] == pointer
    with principal_session(world.principal):
        assert not Trace.objects.exists()


LISTS, TEXTS = (
    {"kinds", "subkinds", "types", "labels"},
    {"repository", "path_prefix", "state", "milestone", "assignee"},
)
TIMES = {"since", "until", "valid_since", "valid_until", "known_at"}


@pytest.mark.parametrize("name", sorted(LISTS | TEXTS | TIMES))
def test_every_filter_refuses_what_is_no_text_or_no_moment(api, name) -> None:
    assert SearchFilters.model_fields.keys() == LISTS | TEXTS | TIMES
    bad = (
        ["2026-01-01T00:00:00", "2026-01-01", 1767225600, ""] if name in TIMES else ["a\0b/", "a\ud800b/", 1]
    )
    for value in bad:
        given = [value] if name in LISTS else value
        response = api.post("/v1/search", {"query": "billing", "filters": {name: given}})
        assert response.status_code == 400, value
        pointer = f"/filters/{name}/0" if name in LISTS else f"/filters/{name}"
        assert json.loads(response.content)["pointer"] == pointer, value


SECRET = "zebra-handle"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/search", {"query": SECRET, "limit": 0}),
        ("/v1/search", {"query": SECRET * 400}),
        ("/v1/search", {"query": f"{SECRET}\x00"}),
        ("/v1/search", {"query": "x", "node_ids": [SECRET]}),
        ("/v1/search", {"query": "x", "scopes": [f"{SECRET} !"]}),
        ("/v1/search", {"query": "x", "filters": {"path_prefix": SECRET}}),
        ("/v1/search", {"query": "x", "filters": {"since": SECRET}}),
        ("/v1/search", {"query": "x", "epistemic_mode": SECRET}),
        ("/v1/search", f'{{"query": "{SECRET}'.encode()),
        ("/v1/search", [SECRET]),
        ("/v1/nodes:batch", {"items": [{"identity": SECRET, "text": 1}], "x": SECRET}),
        ("/v1/nodes:batch", {"items": [{"identity": SECRET, "type": SECRET, "text": SECRET}]}),
    ],
)
def test_refusals_and_logs_hold_nothing_that_was_sent(world, caplog, capfd, path, body) -> None:
    api = Api(world.principal, "search", "memory")
    caplog.set_level("DEBUG", logger="apps")
    response = api.post(path, body)
    assert response.status_code == (400 if path == "/v1/search" or "x" in body else 200)
    assert SECRET not in response.content.decode()
    assert SECRET not in said(caplog, capfd)


@pytest.mark.parametrize("name", ["limit", "cursor", "since", "mode", SECRET])
def test_a_refused_listing_repeats_nothing_either(api, caplog, capfd, name) -> None:
    caplog.set_level("DEBUG", logger="apps")
    response = api.get("/v1/traces", **{name: SECRET})
    assert response.status_code == 400
    assert SECRET not in response.content.decode().replace(f'"pointer":"/{name}"', "")
    assert SECRET not in said(caplog, capfd)


def said(caplog, capfd) -> str:
    """What was logged: the messages, and the lines as they were written."""
    written = capfd.readouterr()
    return str(caplog.text) + written.out + written.err


def test_null_scopes_are_all_scopes_and_extreme_multipliers_are_taken(api) -> None:
    body = {"query": "billing", "scopes": None, "ranking_multipliers": {"lexical": 0.25, "semantic": 4}}
    response = api.post("/v1/search", body)
    assert response.status_code == 200
    assert json.loads(response.content)["trace_id"]


def test_a_search_is_used_and_confirmed_over_http_by_any_client_of_the_principal(world, api) -> None:
    store(world.principal, *CHAIN)
    body = {"query": "billing rollback", "limit": 1, "graph_expand": True}
    answer = json.loads(api.post("/v1/search", body).content)
    source = answer["graph_results"][1]["source_id"]
    uses = [{"source_id": source, "stage": stage} for stage in ("selected", "validated", "used")]
    call = {"idempotency_key": "k1", "uses": uses}
    first = api.post(f"/v1/traces/{answer['trace_id']}/uses", call)
    second = Api(world.principal).post(f"/v1/traces/{answer['trace_id']}/uses", call)
    assert first.content == second.content
    stranger = Api(make_principal(world.workspace)).post(f"/v1/traces/{answer['trace_id']}/uses", call)
    assert (stranger.status_code, code_of(stranger)) == (404, "unknown_trace")
    outcome = {"idempotency_key": "k2", "outcome": "confirmed", "source_ids": [source], "reason": "it worked"}
    confirmed = json.loads(api.post(f"/v1/traces/{answer['trace_id']}/outcomes", outcome).content)
    assert [change["delta"] for change in confirmed["changes"]] == [0.25, 0.25]


def test_the_scope_of_the_token_is_checked(world) -> None:
    assert Api(world.principal, "feedback").post("/v1/search", {"query": "a"}).status_code == 403


@pytest.mark.django_db(transaction=True)
def test_when_the_memory_cannot_be_written_the_rows_are_answered_and_nothing_is_left(
    world, owner_connection, caplog
) -> None:
    store(world.principal, thread(1, "secret billing"))
    owner_connection.execute(
        """
        CREATE FUNCTION refuse_activation() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN RAISE EXCEPTION 'driver words'; END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON traces_activation FOR EACH ROW EXECUTE FUNCTION refuse_activation()
        """
    )
    try:
        response = Api(world.principal).post("/v1/search", {"query": "secret billing"})
    finally:
        owner_connection.execute(
            "DROP TRIGGER refuse ON traces_activation; DROP FUNCTION refuse_activation()"
        )
    answer = json.loads(response.content)
    assert response.status_code == 200
    assert len(answer["results"]) == 1
    assert (answer["memory_error"], answer["feedback_available"]) == ("memory_save_failed", False)
    assert "trace_id" not in answer
    assert "secret" not in caplog.text
    assert "driver words" not in caplog.text + response.content.decode()
    with principal_session(world.principal):
        assert not Trace.objects.exists()
        assert not Activation.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_memory_that_is_down_is_unavailable_and_burns_no_key(world, owner_connection, monkeypatch) -> None:
    store(world.principal, thread(1, "billing"))
    api = Api(world.principal)
    answer = json.loads(api.post("/v1/search", {"query": "billing"}).content)
    call = {"uses": [{"source_id": answer["results"][0]["source_id"], "stage": "selected"}]}
    path = f"/v1/traces/{answer['trace_id']}/uses"
    owner_connection.execute(
        """
        CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN RAISE EXCEPTION 'driver words' USING ERRCODE = 'disk_full'; END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON traces_use FOR EACH ROW EXECUTE FUNCTION full_disk()
        """
    )
    try:
        refused = api.post(path, call, **{"Idempotency-Key": "k1"})
    finally:
        owner_connection.execute("DROP TRIGGER refuse ON traces_use; DROP FUNCTION full_disk()")

    def down(caller):
        raise OperationalError("driver words")

    with monkeypatch.context() as patched:
        patched.setattr("apps.traces.api_base.principal_session", down)
        history = api.get(f"/v1/traces/{answer['trace_id']}")
    for response in (refused, history):
        assert (response.status_code, code_of(response)) == (503, "memory_unavailable")
        assert b"driver words" not in response.content
    assert api.post(path, call, **{"Idempotency-Key": "k1"}).status_code == 200


def test_every_failing_channel_is_a_refusal_with_fixed_words(api, world, monkeypatch, caplog) -> None:
    store(world.principal, thread(1, "billing"))
    monkeypatch.setattr("apps.retrieval.candidates.lexical._STATEMENT", "SELECT 1/0")
    monkeypatch.setattr("apps.retrieval.candidates.lexical.statement", lambda *a: ("SELECT 1/0", {}))
    response = api.post("/v1/search", {"query": "secret billing"})
    assert (response.status_code, code_of(response)) == (503, "unavailable")
    assert "secret" not in response.content.decode() + caplog.text
    with principal_session(world.principal):
        assert not Trace.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_command_prints_a_table(world) -> None:
    from apps.accounts.services import enter_principal

    principal = enter_principal(workspace=world.workspace.pk, subject="token:reader")
    store(principal, *CHAIN)
    out = StringIO()
    options = {"workspace": world.workspace.slug, "principal": "reader", "graph": True, "limit": 1}
    call_command("search", "billing rollback", stdout=out, **options)
    printed = out.getvalue()
    assert "acme/app" in printed
    assert "gamma-page" in printed
    assert "Trace " in printed
    with pytest.raises(CommandError):
        call_command("search", "x", stdout=out, **(options | {"workspace": "nowhere"}))


def test_the_schema_of_the_api_tells_of_bounds_defaults_and_nested_answers(client) -> None:
    schema = json.loads(client.get("/v1/schema").content)
    operation = schema["paths"]["/v1/search"]["post"]
    reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    request = schema["components"]["schemas"][reference.rsplit("/", 1)[1]]
    assert request["properties"]["limit"]["maximum"] == 50
    assert request["properties"]["limit"]["default"] == 10
    assert request["properties"]["query"]["maxLength"] == 4096
    answer = schema["components"]["schemas"]["SearchAnswer"]["properties"]
    assert answer["results"]["items"]["$ref"].endswith("ResultRow")
    for path in ("traces", "traces/{trace_id}", "traces/{trace_id}/uses", "traces/{trace_id}/outcomes"):
        assert f"/v1/{path}" in schema["paths"]
    assert callable(searched)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_none_are_refused(api, number) -> None:
    body = f'{{"query": "billing", "ranking_multipliers": {{"lexical": {number}}}}}'.encode()
    response = api.post("/v1/search", body)
    assert (response.status_code, code_of(response)) == (400, "invalid_memory_request")


def test_a_multiplier_of_the_other_formula_is_refused_by_name(api) -> None:
    response = api.post("/v1/search", {"query": "billing", "ranking_multipliers": {"pinned": 2}})
    assert response.status_code == 400
    assert json.loads(response.content)["pointer"] == "/ranking_multipliers"
