"""Which searches get a ticket: each missing condition alone leaves the answer as if there were no journal."""

import json
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from prometheus_client import REGISTRY

from apps.core import clock
from apps.core.db.identity import PrincipalIdentity
from apps.observations import standing
from apps.observations.admission import Served, admit
from apps.search import services
from apps.search.schemas import SearchRequest
from tests.support import journal
from tests.support.api import Api
from tests.support.factories import World, make_principal, make_staff
from tests.support.library import CHAIN, store

pytestmark = pytest.mark.django_db(transaction=True)

QUERY = "billing rollback"
FIELDS = ("observation_id", "_meta", "retrieval/")


def counted(code: str) -> float:
    return REGISTRY.get_sample_value("memory_observation_admissions_total", {"code": code}) or 0.0


def ask(caller: PrincipalIdentity, *, verified: bool = True, **fields: Any) -> bytes:
    given = {"query": QUERY, "corpus": "shared", "reference_time": clock.now()} | fields
    return services.search(caller=caller, request=SearchRequest(**given), verified=verified).body


def shared_of(world: World) -> PrincipalIdentity:
    """The shared principal, whose passages a search of the shared corpus finds."""
    shared = world.principal.shared_principal_id
    assert shared is not None
    return PrincipalIdentity(shared, world.workspace.pk, shared)


@pytest.fixture
def library(on: World) -> World:
    store(shared_of(on), *CHAIN)
    return on


def test_served_search_of_an_enrolled_principal_is_observed(library: World, owner_connection) -> None:
    before = counted("admitted")
    answer = json.loads(ask(library.principal))
    assert counted("admitted") == before + 1
    observation = answer["_meta"]["retrieval/observation_id"]
    assert answer["_meta"] == {
        "retrieval/observation_id": observation,
        "retrieval/persistence": "durable",
    }
    assert len(observation) == 36
    assert {row["observation_id"] for row in answer["results"]} == {observation}
    found = owner_connection.execute(
        "SELECT id::text, trace_id::text, corpus, text_disposition, purpose, consent_version "
        "FROM observations_observation"
    ).fetchall()
    assert found == [
        (observation, answer["trace_id"], "shared", "retained", journal.PURPOSE, journal.CONSENT)
    ]


def off_kill(world: World, owner, settings) -> None:
    settings.OBSERVATION_KILL_SWITCH = True


def off_stored_kill(world: World, owner, settings) -> None:
    from apps.core.db.sessions import staff_session
    from apps.observations.services.enrolments import throw_kill_switch

    with staff_session(make_staff(world.workspace, "operate_collection")):
        throw_kill_switch(workspace_id=world.workspace.pk, reason="stop it")


def off_ceiling(world: World, owner, settings) -> None:
    settings.OBSERVATION_MODE_CEILING = "off"


def off_spelling(world: World, owner, settings) -> None:
    settings.OBSERVATION_MODE_CEILING = "Platform-Text"


def off_mode(world: World, owner, settings) -> None:
    journal.set_policy(owner, world.workspace.pk, mode="off")


def off_gate(world: World, owner, settings) -> None:
    owner.execute("UPDATE observations_maintenance_state SET system_identifier = system_identifier + 1")


def off_key(world: World, owner, settings) -> None:
    settings.OBSERVATION_HMAC_KEYS = {journal.KEY_ID: "x" * 31}


def off_no_key(world: World, owner, settings) -> None:
    settings.OBSERVATION_HMAC_ACTIVE_KEY = "another"


def off_enrolment(world: World, owner, settings) -> None:
    owner.execute("UPDATE observations_enrolment SET withdrawn_at = now()")


def off_list(world: World, owner, settings) -> None:
    owner.execute("DELETE FROM observations_enrolment")


CONDITIONS = {
    "killed": (off_kill, off_stored_kill),
    "mode_off": (off_ceiling, off_spelling, off_mode),
    "journal_closed": (off_gate,),
    "no_key": (off_key, off_no_key),
    "not_enrolled": (off_enrolment, off_list),
}


@pytest.mark.parametrize(
    ("code", "take_away"),
    [(code, each) for code, found in CONDITIONS.items() for each in found],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_each_missing_condition_alone_leaves_no_trace_of_the_journal(
    library: World, owner_connection, settings, monkeypatch, code, take_away
) -> None:
    """The answer is that of a platform without a journal, byte for byte but for what is of one search alone."""
    identity = owner_connection.execute(
        "SELECT system_identifier FROM observations_maintenance_state"
    ).fetchone()[0]
    take_away(library, owner_connection, settings)
    journal.forget()
    try:
        before, at = counted(code), clock.now()
        refused = ask(library.principal, reference_time=at)
        assert counted(code) == before + 1
        assert not any(field.encode() in refused for field in FIELDS)
        assert journal.count(owner_connection, "observation") == 0
        monkeypatch.setattr(services, "ticket_for", lambda *args, **more: None)
        absent = ask(library.principal, reference_time=at)
        assert same_but_for_ids(refused) == same_but_for_ids(absent)
    finally:
        owner_connection.execute(
            "UPDATE observations_maintenance_state SET system_identifier = %s", [identity]
        )


def same_but_for_ids(body: bytes) -> str:
    """An answer without what differs between any two searches."""
    document = json.loads(body)
    for name in ("trace_id", "retrieval_receipt_id", "timestamp"):
        document.pop(name)
    for channel in document["channels"]:
        channel.pop("milliseconds")
    for row in document["results"]:
        row.pop("activation")
    return json.dumps(document)


@pytest.mark.parametrize("missing", ["not_verified", "private_not_allowed", "busy"])
def test_of_a_call_each_missing_condition_leaves_no_trace_either(
    library: World, owner_connection, monkeypatch, missing
) -> None:
    given: dict[str, Any] = {"reference_time": clock.now(), "verified": missing != "not_verified"}
    if missing == "private_not_allowed":
        given["corpus"] = "all"
    if missing == "busy":
        for _ in range(3):
            journal.circuit.failed()
    before = counted(missing)
    refused = ask(library.principal, **given)
    assert counted(missing) == before + 1
    monkeypatch.setattr(services, "ticket_for", lambda *args, **more: None)
    assert same_but_for_ids(refused) == same_but_for_ids(ask(library.principal, **given))
    assert journal.count(owner_connection, "observation") == 0


def test_unverified_untraced_private_and_busy_ones_are_not_admitted(library: World, settings) -> None:
    def served(**more: Any) -> Served:
        return Served(
            **({"caller": library.principal, "verified": True, "traced": True, "shared_only": True} | more)
        )

    assert admit(served()) is not None
    for field, code in (
        ("verified", "not_verified"),
        ("traced", "not_traced"),
        ("shared_only", "private_not_allowed"),
    ):
        before = counted(code)
        assert admit(served(**{field: False})) is None
        assert counted(code) == before + 1
    for _ in range(3):
        journal.circuit.failed()
    before = counted("busy")
    assert admit(served()) is None
    assert counted("busy") == before + 1


def test_scans_and_fetches_have_no_query_to_observe(library: World) -> None:
    node = json.loads(ask(library.principal))["results"][0]["node_id"]
    assert "_meta" not in json.loads(ask(library.principal, query=""))
    assert "_meta" not in json.loads(ask(library.principal, query="", node_ids=[UUID(node)]))


@pytest.fixture
def api(library: World) -> Api:
    return Api(library.principal, superuser=library.superuser)


BODY = {"query": QUERY, "corpus": "shared"}


def test_only_the_credential_says_who_is_observed(library: World, api: Api, owner_connection) -> None:
    other = make_principal(library.workspace)
    forged = {"X-User-Id": str(other.principal_id), "X-Principal": str(other.principal_id)}
    answer = api.post("/v1/search", BODY, **forged)
    assert answer.status_code == 200
    document = answer.json()
    assert len(document["_meta"]["retrieval/observation_id"]) == 36
    assert not any("Hash" in name for row in document["results"] for name in row)
    owner = owner_connection.execute("SELECT principal_id FROM observations_observation").fetchall()
    assert owner == [(library.principal.principal_id,)]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer invalid"},
        {"Authorization": "Basic dXNlcjpwYXNz"},
    ],
    ids=["header alone", "invalid bearer", "basic"],
)
def test_identity_headers_without_a_valid_token_admit_nobody(
    library: World, owner_connection, headers
) -> None:
    more = {"X-User-Id": str(library.principal.principal_id)} | headers
    answer = Client().post("/v1/search", BODY, content_type="application/json", headers=more)
    assert answer.status_code == 401
    assert journal.count(owner_connection, "observation") == 0


def test_staff_cookie_admits_nobody(library: World, owner_connection) -> None:
    client = Client()
    client.force_login(make_staff(library.workspace, "view_traces"))
    answer = client.post(
        "/v1/search",
        BODY,
        content_type="application/json",
        headers={"X-User-Id": str(library.principal.principal_id)},
    )
    assert answer.status_code in {401, 403}
    assert journal.count(owner_connection, "observation") == 0


def test_search_of_a_principal_that_takes_no_part_reads_nothing_more(library: World, monkeypatch) -> None:
    monkeypatch.setattr(standing, "monotonic", lambda: 1.0)  # no cache runs out on a busy machine
    other = make_principal(library.workspace)
    ask(other)
    with journal.statements() as without:
        ask(other, verified=False)
    with journal.statements() as outside:
        ask(other)
    assert len(outside) == len(without)
    ask(library.principal)
    with journal.statements() as enrolled:
        ask(library.principal)
    assert sessions(enrolled) == sessions(without) + 1


def sessions(statements: list[str]) -> int:
    """Transactions that took an identity."""
    return sum("set_config" in statement and "'role'" in statement for statement in statements)
