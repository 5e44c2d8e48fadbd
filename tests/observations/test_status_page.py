"""Journal status: what is overdue and why, what each process knows, until when anything is left, and for whom."""

import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.db import OperationalError
from django.test import Client
from guardian.shortcuts import assign_perm

from apps.accounts.grants import GROUPS
from apps.core import clock
from apps.core.db.sessions import staff_session
from apps.core.ids import uuid7
from apps.observations import status
from apps.observations.admission import Served, admit
from apps.observations.reporting import heartbeat_report
from apps.operations import samples
from apps.operations.models import JobRun, Process
from tests.observations.test_pages import act, client, words
from tests.support import journal
from tests.support.factories import World, make_staff, make_world
from tests.support.journal import HOUR, record
from tests.support.statements import sent

pytestmark = pytest.mark.django_db(transaction=True)

URL = "/admin/observations/status/"
KEPT = "Nothing is kept longer than promised."
QUERY = "how do keys rotate"


@pytest.fixture
def kept(owner_connection: Any) -> Iterator[None]:
    """Expiry succeeded a minute ago."""
    with journal.reset_state(owner_connection):
        owner_connection.execute(
            "UPDATE observations_maintenance_state SET last_success_at = clock_timestamp() - interval '1 minute', "
            "last_drained_at = clock_timestamp() - interval '1 minute'"
        )
        yield


def page(world: World, *grants: str) -> str:
    answer = client(world, *grants).get(URL)
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    return words(answer)


@pytest.mark.parametrize("group", GROUPS)
def test_each_group_sees_the_verdict(on: World, kept: None, group: str) -> None:
    assert KEPT in page(on, *GROUPS[group])


@pytest.mark.parametrize("grants", [(), ("curate", "manage_profiles")], ids=["none", "others"])
def test_it_is_not_there_for_others(on: World, grants: tuple[str, ...]) -> None:
    assert client(on, *grants).get(URL).status_code == 404
    assert Client().get(URL).status_code == 302


def test_a_post_is_not_answered(on: World) -> None:
    assert client(on, "audit").post(URL).status_code == 404


def test_an_overdue_row_that_no_role_sees_is_told_and_why(
    on: World, kept: None, owner_connection: Any
) -> None:
    record(owner_connection, on.principal, ago=2161 * HOUR, text=QUERY)
    text = page(on, "view_traces")
    assert KEPT not in text
    assert "Records are past their deadline" in text
    assert "Texts are past their deadline" in text
    assert "overdue records ✕ 1" in text
    assert "oldest overdue 1 h" in text
    assert QUERY not in text


def test_missed_runs_are_told_in_words(on: World, owner_connection: Any) -> None:
    with journal.reset_state(owner_connection):
        text = page(on, "audit")
        assert "Expiry has never succeeded" in text
        assert "never_succeeded" in text


def test_what_cannot_be_read_is_not_measured_and_the_rest_stands(
    on: World, kept: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> status.Reading:
        raise OperationalError("secret of a driver")

    monkeypatch.setattr(status, "read", fail)
    text = page(on, "audit")
    assert "Not measured. The status of the journal could not be read." in text
    assert "overdue records not measured" in text
    assert KEPT not in text
    assert "secret of a driver" not in text
    assert "platform-text" in text


def test_a_part_that_fails_says_so_in_its_place(
    on: World, kept: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.observations.selectors.staff.BACKLOG", "SELECT no_such_column")
    text = page(on, "audit")
    assert "Backlog the most that was overdue, hour by hour ✕ danger Not measured" in text
    assert KEPT in text


def test_the_last_deadlines_count_hidden_rows_of_granted_workspaces_alone(
    on: World, kept: None, owner_connection: Any
) -> None:
    other = make_world()
    record(owner_connection, other.principal, ago=HOUR)
    record(owner_connection, on.principal, ago=2161 * HOUR)
    last = record(owner_connection, on.principal, ago=48 * HOUR, text=QUERY, text_life=24 * HOUR * 30)
    row = owner_connection.execute(
        "SELECT o.record_expires_at, t.text_expires_at, (SELECT max(record_expires_at) "
        "FROM observations_observation WHERE workspace_id = %s) "
        "FROM observations_observation o JOIN observations_observation_text t ON t.observation_id = o.id "
        "WHERE o.id = %s",
        [other.workspace.pk, last],
    ).fetchone()
    # The operator may not see a single row of them.
    text = page(on, "operate_collection")
    assert shown(row[0]) in text
    assert shown(row[1]) in text
    assert shown(row[2]) not in text
    assert other.workspace.name not in text
    assert "no record is left" in page(make_world(), "operate_collection")


def shown(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def test_the_last_deadlines_are_found_by_index(on: World, owner_connection: Any) -> None:
    owner_connection.execute("SELECT set_config('enable_seqscan', 'off', false)")
    for table, column in (
        ("observations_observation", "record_expires_at"),
        ("observations_observation_text", "text_expires_at"),
    ):
        plan = owner_connection.execute(
            f"EXPLAIN SELECT max({column}) FROM {table} WHERE workspace_id = %s", [on.workspace.pk]
        ).fetchall()
        assert any("observations_last_" in line for (line,) in plan), plan


def process(kind: str, seen: timedelta, report: Any, **more: Any) -> Process:
    now = clock.now()
    return Process.objects.create(
        kind=kind,
        pid=4711,
        started_at=now - HOUR,
        seen_at=now - seen,
        report={"observations": report},
        **more,
    )


def test_processes_say_what_they_know_and_stale_ones_are_named(on: World, kept: None, settings: Any) -> None:
    settings.RELEASE = "a41c"
    other = make_world()
    known = {
        str(on.workspace.pk): {"mode": "platform-text", "generation": 7},
        str(other.workspace.pk): {"mode": "hash", "generation": 93},
    }
    report = {**heartbeat_report(), "workspaces": known, "circuit_closed": False}
    process("web", timedelta(seconds=5), report, release="a41c")
    process("worker", timedelta(seconds=90), {"error": "OperationalError"}, release="9f00")
    text = page(on, "operate_collection")
    assert f"{on.workspace.name}: platform-text, generation 7" in text
    assert "generation 93" not in text
    assert "the circuit is open" in text
    assert text.index("worker 4711") < text.index("web 4711")
    assert "✕ stale" in text.split("worker 4711")[1].split("web 4711")[0]
    assert "! another 9f00" in text
    assert "cannot tell: OperationalError" in text
    assert "stale" not in text.split("web 4711")[1]


def test_processes_and_runs_are_for_those_who_watch(on: World, kept: None) -> None:
    process("web", timedelta(seconds=5), heartbeat_report())
    text = page(on, "view_traces")
    assert "web 4711" not in text
    assert text.count("Shown to whoever holds operate collection") == 3


def test_what_became_of_searches_is_counted_over_live_processes(on: World, kept: None) -> None:
    assert admit(Served(on.principal, verified=False, traced=True, shared_only=True)) is None
    told = {"admissions": {"not_verified": 5, "admitted": 2}, "writes": {"stored": 2}}
    process("web", timedelta(seconds=5), told)
    process("web", timedelta(seconds=5), told)
    process("web", timedelta(seconds=300), told)
    text = page(on, "audit")
    assert "no credential of a principal came with the call not_verified 10" in text
    assert "admitted admitted 4" in text
    assert "stored stored 4" in text


def test_the_backlog_is_drawn_with_its_gaps(on: World, kept: None) -> None:
    now = clock.now()
    for hours, value in ((0, 3.0), (2, 0.0)):
        readings = [samples.Reading(f"observation_expired_{what}", value) for what in ("records", "texts")]
        samples.record(readings, at=now - timedelta(hours=hours))
    text = page(on, "view_traces")
    last, gap, before = ((now - timedelta(hours=at)).replace(minute=0) for at in (0, 1, 2))
    assert f"{last:%m-%d %H:%M} 3 3" in text
    assert f"{gap:%m-%d %H:%M} not measured not measured" in text
    assert f"{before:%m-%d %H:%M} 0 0" in text


def test_a_backlog_without_a_sample_is_not_measured(on: World, kept: None) -> None:
    assert "Not measured: no sample was taken" in page(on, "view_traces")


def test_runs_of_expiry_are_links(on: World, kept: None) -> None:
    now = clock.now()
    run = JobRun.objects.create(
        id=uuid7(),
        name="observations.expire",
        lease_key="observations.expire",
        asked_at=now,
        started_at=now,
        finished_at=now,
        lease_expires_at=now,
        outcome="failed",
        code="sqlstate_57014",
    )
    html = client(on, "audit").get(URL).content.decode()
    assert f"/admin/operations/jobrun/{run.pk}/change/" in html


def test_the_weaker_of_ceiling_and_policy_rules(on: World, kept: None, settings: Any) -> None:
    assert "ceiling platform-text" in page(on, "audit")
    settings.OBSERVATION_MODE_CEILING = "hash"
    settings.OBSERVATION_HMAC_KEYS = {}
    text = page(on, "audit")
    assert "hash (the ceiling; its policy says platform-text)" in text
    assert "fingerprint key ! none" in text


def test_it_stands_while_the_journal_is_closed(on: World, kept: None, owner_connection: Any) -> None:
    table = "observations_maintenance_state"
    owner_connection.execute(f"UPDATE {table} SET database_oid = database_oid + 1")
    try:
        text = page(on, "audit")
    finally:
        owner_connection.execute(f"UPDATE {table} SET database_oid = database_oid - 1")
    assert "it was restored or copied" in text
    assert "restore gate ✕ closed" in text


def test_statements_do_not_grow_with_workspaces(on: World, kept: None, owner_connection: Any) -> None:
    def asked(user: Any) -> int:
        signed_in = Client()
        signed_in.force_login(user)
        signed_in.get(URL)
        with sent() as statements:
            assert signed_in.get(URL).status_code == 200
        return len(statements)

    user = make_staff(on.workspace, "audit", "view_traces")
    one = asked(user)
    for _ in range(5):
        more = make_world()
        journal.set_policy(owner_connection, more.workspace.pk)
        with staff_session(more.superuser):
            for grant in ("audit", "view_traces"):
                assign_perm(f"accounts.{grant}", user, more.workspace)
    assert asked(user) == one


@pytest.mark.parametrize("role", ["memory_api", "memory_maintenance", "memory_monitor", "memory_app"])
def test_only_staff_run_the_functions_of_the_pages(role: str) -> None:
    with psycopg.connect(os.environ["DATABASE_ADMIN_URL"]) as admin:
        for function in ("observations_last_deadlines()", "observations_stops()"):
            held = admin.execute("SELECT has_function_privilege(%s, %s, 'EXECUTE')", [role, function])
            assert held.fetchone() == (False,)


def test_the_head_of_the_page_stops_collection(on: World, kept: None) -> None:
    operator = client(on, "operate_collection", "view_traces")
    assert "Kill switch: off Stop collection…" in words(operator.get(URL))
    act(operator, "/admin/observations/killswitch/throw/", workspace=str(on.workspace.pk))
    text = words(operator.get(URL))
    assert "collection is stopped" in text
    assert f"{on.workspace.name}, since" in text
    assert "Release…" in text
    assert "Stop collection…" not in text
