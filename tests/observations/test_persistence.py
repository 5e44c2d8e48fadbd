"""One record, in one bounded transaction of its own: durable before the answer leaves, or not told at all."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psycopg
import pytest
import structlog
from django.db import connection
from prometheus_client import REGISTRY

from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session, staff_session
from apps.core.ids import uuid7
from apps.core.policies import newest_version, publish_policy
from apps.core.text import SEARCH_BUDGET
from apps.observations import circuit as circuits
from apps.observations.admission import Served, Ticket, admit
from apps.observations.events import Event, event_of
from apps.observations.services import erasure, records
from apps.observations.services.enrolments import throw_kill_switch, withdraw_own
from apps.search import observed, services
from apps.traces.exceptions import SaveFailed
from memory_platform.settings.database import login
from tests.observations.test_admission import ask, counted, shared_of
from tests.observations.test_events import answered, hit
from tests.support import journal
from tests.support.factories import World, make_principal, make_staff
from tests.support.library import CHAIN, store, thread
from tests.support.server import PASSWORD

pytestmark = pytest.mark.django_db(transaction=True)


def written(code: str) -> float:
    return REGISTRY.get_sample_value("memory_observation_writes_total", {"code": code}) or 0.0


def ticket_of(caller: PrincipalIdentity) -> Ticket:
    found = admit(Served(caller=caller, verified=True, traced=True, shared_only=True))
    assert found is not None
    return found


def event(caller: PrincipalIdentity, ticket: Ticket | None = None) -> Event:
    return event_of(ticket or ticket_of(caller), answered([hit(1)]))


def fields_in(body: bytes) -> bool:
    return b"observation_id" in body or b"_meta" in body


@pytest.fixture
def library(on: World) -> World:
    store(shared_of(on), *CHAIN)
    return on


def test_large_answers_stay_within_their_budget(on: World, owner_connection) -> None:
    store(shared_of(on), *(thread(n, f"billing rollback {n} " + "я" * 9000) for n in range(21)))
    body = ask(on.principal, limit=20, max_per_source=None)
    assert len(body) <= SEARCH_BUDGET
    answer = json.loads(body)
    ids = [row["node_id"] for row in answer["results"]]
    assert len(ids) == 20
    assert {row["observation_id"] for row in answer["results"]} == {
        answer["_meta"]["retrieval/observation_id"]
    }
    (snapshot,) = owner_connection.execute("SELECT snapshot FROM observations_observation").fetchone()
    assert [each["id"] for each in snapshot["hits"]] == ids
    assert (snapshot["availableCount"], snapshot["returnedCount"], snapshot["omittedHits"]) == (21, 20, True)
    assert all(each["excerpted"] for each in snapshot["hits"])
    assert all(each["retrievedContentHash"] != each["returnedContentHash"] for each in snapshot["hits"])
    row = owner_connection.execute("SELECT o::text FROM observations_observation o").fetchone()[0]
    assert "acme" not in row


def test_foreign_ids_in_the_body_store_nothing_and_the_answer_goes_out(
    library: World, owner_connection, monkeypatch
) -> None:
    monkeypatch.setattr(observed, "_ranked", lambda rows: [hit(1)])
    before = written("observation_snapshot_mismatch")
    body = ask(library.principal)
    assert json.loads(body)["results"]
    assert not fields_in(body)
    assert written("observation_snapshot_mismatch") == before + 1
    assert journal.count(owner_connection, "observation") == 0


def test_locked_journal_costs_three_searches_and_then_nothing(
    library: World, owner_connection, monkeypatch
) -> None:
    """Three tries, each bounded by the timeouts of its transaction; nothing is asked of the journal after them."""
    clock = [time.monotonic()]
    monkeypatch.setattr(circuits, "monotonic", lambda: clock[0])
    ask(library.principal)
    failed, busy = written("failed"), counted("busy")
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"]) as blocker:
        blocker.execute("LOCK TABLE observations_observation IN ACCESS EXCLUSIVE MODE")
        for _ in range(3):
            with journal.statements() as asked:
                answer = ask(library.principal)
            assert json.loads(answer)["results"]
            assert not fields_in(answer)
            assert sum("INSERT INTO observations_observation" in statement for statement in asked) == 1
            assert sum("'100ms'" in statement and "'250ms'" in statement for statement in asked) == 1
        with journal.statements() as asked:
            answers = [ask(library.principal) for _ in range(5)]
        assert all(json.loads(answer)["results"] and not fields_in(answer) for answer in answers)
        assert not any("observations_" in statement for statement in asked)
        blocker.rollback()
    assert (written("failed"), counted("busy")) == (failed + 3, busy + 5)
    clock[0] += circuits.REST_SECONDS - 0.001
    assert not fields_in(ask(library.principal))
    clock[0] += 0.001
    assert fields_in(ask(library.principal))
    assert journal.count(owner_connection, "observation") == 2


def test_failures_that_lie_apart_open_no_circuit(monkeypatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(circuits, "monotonic", lambda: clock[0])
    circuit = circuits.Circuit()

    def after_failures(number: int, seconds: float = 0) -> bool:
        for _ in range(number):
            circuit.failed()
            clock[0] += seconds
        return circuit.closed

    assert after_failures(6, seconds=circuits.WINDOW_SECONDS / 2 + 0.1)
    assert not after_failures(2)
    clock[0] += circuits.REST_SECONDS
    assert after_failures(0)
    assert after_failures(1)


def test_writes_wait_for_locks_and_statements_no_longer_than_promised(on: World) -> None:
    found = event(on.principal)
    with journal.statements() as asked:
        assert records.store(caller=on.principal, event=found)
    (opening,) = [statement for statement in asked if "lock_timeout" in statement]
    assert "'100ms'" in opening
    assert "'250ms'" in opening


def test_refused_connection_is_one_constant_line(
    library: World, admin_connection, owner_connection, monkeypatch, caplog, capfd
) -> None:
    """The server ends the connection once the trace is committed, and takes no other of that login."""
    stored = records.store

    def store_without_server(**given: Any) -> bool:
        admin_connection.execute("ALTER ROLE memory_app NOLOGIN")
        admin_connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'memory_app'"
        )
        connection.close()
        return stored(**given)

    monkeypatch.setattr(records, "store", store_without_server)
    before = written("failed")
    caplog.set_level("DEBUG")
    try:
        with structlog.testing.capture_logs() as lines:
            body = ask(library.principal, query="billing of the amber quarter")
    finally:
        admin_connection.execute("ALTER ROLE memory_app LOGIN")
        connection.close()
    answer = json.loads(body)
    assert answer["trace_id"]
    assert answer["results"]
    assert not fields_in(body)
    told = [line for line in lines if line["log_level"] in {"error", "warning", "critical"}]
    assert told == [{"event": "observation_not_stored", "log_level": "error"}]
    assert written("failed") == before + 1
    said = caplog.text + "".join(capfd.readouterr()) + repr(lines)
    for secret in ("amber", "memory_app", "not permitted", "terminating", answer["trace_id"]):
        assert secret not in said, secret
    assert journal.count(owner_connection, "observation") == 0


@pytest.mark.parametrize("where", ["event", "standing", "insert"])
def test_whatever_goes_wrong_is_one_constant_line_and_one_count(
    library: World, owner_connection, monkeypatch, caplog, where
) -> None:
    """Also what nobody foresaw, whose words may hold the query."""

    def fail(*args: Any, **more: Any) -> Any:
        raise RuntimeError(f"could not keep {args} {more} amber quarter")

    place, name = {
        "event": (observed, "event_of"),
        "standing": (records, "asked_standing"),
        "insert": (records, "_inserting"),
    }[where]
    monkeypatch.setattr(place, name, fail)
    before = written("failed")
    caplog.set_level("DEBUG")
    with structlog.testing.capture_logs() as lines:
        body = ask(library.principal, query="billing of the amber quarter")
    assert json.loads(body)["results"]
    assert not fields_in(body)
    told = [line for line in lines if line["log_level"] in {"error", "warning", "critical"}]
    assert told == [{"event": "observation_not_stored", "log_level": "error"}]
    assert written("failed") == before + 1
    assert "amber" not in caplog.text + repr(lines)
    assert journal.count(owner_connection, "observation") == 0


def test_answers_with_an_id_have_their_row_in_the_database(library: World, owner_connection) -> None:
    for _ in range(5):
        answer = json.loads(ask(library.principal))
        key = answer["_meta"]["retrieval/observation_id"]
        # Another connection sees it, so it is committed before the answer is there to be sent.
        found = owner_connection.execute("SELECT 1 FROM observations_observation WHERE id = %s", [key])
        assert found.fetchone() == (1,)


def test_searches_whose_trace_was_rolled_back_have_no_row(
    library: World, owner_connection, monkeypatch
) -> None:
    def fail(*args: Any, **more: Any) -> Any:
        raise SaveFailed("storage")

    monkeypatch.setattr(services, "_save", fail)
    body = ask(library.principal)
    assert json.loads(body)["memory_error"] == "memory_save_failed"
    assert not fields_in(body)
    assert journal.count(owner_connection, "observation") == 0


def test_the_same_id_twice_is_one_row(on: World, owner_connection) -> None:
    found = event(on.principal)
    assert records.store(caller=on.principal, event=found)
    assert records.store(caller=on.principal, event=found)
    assert journal.count(owner_connection, "observation") == 1
    assert journal.count(owner_connection, "observation_text") == 1


# Who writes.

LOGINS = {
    "superuser": "CREATE ROLE tests_writer LOGIN SUPERUSER PASSWORD '{}'",
    "bypass": "CREATE ROLE tests_writer LOGIN BYPASSRLS PASSWORD '{}' IN ROLE memory_api",
    "member": "CREATE ROLE tests_writer LOGIN PASSWORD '{}' IN ROLE memory_api, memory_owner",
}


@contextmanager
def signed_in_as(name: str) -> Iterator[None]:
    connection.close()
    before = dict(connection.settings_dict)
    address = os.environ["DATABASE_URL"].replace("memory_app", name)
    connection.settings_dict.update(login(address, pooled=False))
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.clear()
        connection.settings_dict.update(before)


@pytest.mark.parametrize("kind", LOGINS, ids=str)
def test_logins_that_policies_do_not_bind_write_nothing(
    on: World, owner_connection, admin_connection, kind
) -> None:
    found = event(on.principal)
    admin_connection.execute(LOGINS[kind].format(PASSWORD))
    admin_connection.execute(f"GRANT CONNECT ON DATABASE {connection.settings_dict['NAME']} TO tests_writer")
    before = written("observation_role_not_isolated")
    try:
        with signed_in_as("tests_writer"), structlog.testing.capture_logs() as lines:
            assert not records.store(caller=on.principal, event=found)
            assert connection.connection is None
        assert [line["event"] for line in lines] == ["observation_not_stored"]
    finally:
        admin_connection.execute("DROP OWNED BY tests_writer")
        admin_connection.execute("DROP ROLE tests_writer")
    assert written("observation_role_not_isolated") == before + 1
    assert journal.count(owner_connection, "observation") == 0


def test_principals_in_turn_on_one_connection_see_only_their_own(on: World) -> None:
    other = make_principal(on.workspace)
    journal.take_part(on, other)
    for principal, times in ((on.principal, 1), (other, 2)):
        for _ in range(times):
            assert records.store(caller=principal, event=event(principal))
    assert journal.seen(on.principal, "observations_observation") == 1
    assert journal.seen(other, "observations_observation") == 2
    with pytest.raises(Exception, match="permission denied"), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM observations_observation")


# The fence.


def switch_off(world: World) -> None:
    with staff_session(make_staff(world.workspace, "operate_collection")):
        publish_policy(
            workspace_id=world.workspace.pk,
            kind="collection",
            document=journal.DEFAULT | {"mode": "off"},
            if_match=newest_version(world.workspace.pk, "collection").hash,  # type: ignore[union-attr]
            reason="enough",
        )


def kill(world: World) -> None:
    with staff_session(make_staff(world.workspace, "operate_collection")):
        throw_kill_switch(workspace_id=world.workspace.pk, reason="enough")


def kill_all(world: World) -> None:
    with staff_session(world.superuser):
        throw_kill_switch(workspace_id=None, reason="enough")


def take_leave(world: World) -> None:
    with principal_session(world.principal):
        assert withdraw_own() is not None


def erase(world: World) -> None:
    with principal_session(world.principal):
        begun = erasure.begin()
    erasure.run(begun)


@pytest.mark.parametrize("shut", [switch_off, kill, kill_all, take_leave, erase], ids=lambda f: f.__name__)
def test_once_the_journal_is_shut_no_admitted_search_becomes_a_row(
    on: World, owner_connection, shut: Callable[[World], None]
) -> None:
    """Writers with tickets of before never stop; from the commit on, not one row appears."""
    ticket, stop = ticket_of(on.principal), threading.Event()
    found = event(on.principal, ticket)

    def write() -> None:
        try:
            while not stop.is_set():
                records.store(caller=on.principal, event=replace(found, ticket=replace(ticket, id=uuid7())))
        finally:
            connection.close()

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    try:
        while journal.count(owner_connection, "observation") < 5:
            time.sleep(0.005)
        shut(on)
        there = journal.count(owner_connection, "observation")
        refused = sum(written(code) for code in ("mode_off", "killed", "not_enrolled", "erased"))
        until = time.monotonic() + 5
        while time.monotonic() < until:
            now = sum(written(code) for code in ("mode_off", "killed", "not_enrolled", "erased"))
            if now >= refused + 6:
                break
            time.sleep(0.005)
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert now >= refused + 6
    assert journal.count(owner_connection, "observation") == there
    assert there == 0 if shut is erase else there >= 5


def test_an_enrolment_after_the_ticket_is_another_one(on: World, owner_connection) -> None:
    found = event(on.principal)
    take_leave(on)
    journal.take_part(on)
    assert not records.store(caller=on.principal, event=found)
    assert journal.count(owner_connection, "observation") == 0
