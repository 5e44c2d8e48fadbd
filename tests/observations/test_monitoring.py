"""What monitors ask: the command's exit codes and the endpoint's answers."""

import json
import os
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from apps.core.problems import Problem
from apps.observations import status
from tests.observations.test_expiry import call_expire, move_success
from tests.support import journal
from tests.support.api import Api
from tests.support.factories import World
from tests.support.journal import HOUR, record

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def state(owner_connection, settings):
    settings.MONITOR_DATABASE_URL = os.environ["MONITOR_DATABASE_URL"]
    with journal.reset_state(owner_connection):
        call_expire()
        yield owner_connection


def run(*options: str) -> tuple[int, dict[str, Any]]:
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("observation_status", *options, stdout=out)
    (line,) = out.getvalue().splitlines()
    assert isinstance(ended.value.code, int)
    return ended.value.code, json.loads(line)


def test_no_alarm_is_exit_zero() -> None:
    code, found = run()
    assert code == 0
    assert found["status"] == "ok"
    assert found["alarm_reasons"] == []
    assert set(status.COLUMNS) <= found.keys()


def test_young_backlog_is_exit_one_and_strictly_two(world: World, state) -> None:
    record(state, world.principal, ago=HOUR, hours=1)
    code, found = run()
    assert (code, found["alarm_reasons"]) == (1, ["expired_records"])
    assert run("--strict")[0] == 2
    record(state, world.principal, ago=2 * HOUR, hours=1)
    assert run()[0] == 2


def test_alarms_are_exit_two(state) -> None:
    move_success(state, "-31 minutes")
    assert run()[0] == 2


@pytest.mark.parametrize(
    "address",
    [
        None,
        "",
        "postgresql:///memory?host=/nowhere&user=memory_probe",
        "refused login",
        "not a dsn \x00",
    ],
    ids=["none", "empty", "no server", "refused login", "no dsn"],
)
def test_no_answer_is_exit_three(settings, address) -> None:
    if address == "refused login":
        address = os.environ["MONITOR_DATABASE_URL"].replace("memory_probe", "nobody_here")
    settings.MONITOR_DATABASE_URL = address
    assert run() == (3, {"status": "unknown"})


def test_late_empty_and_unreadable_answers_are_exit_three(state, monkeypatch) -> None:
    monkeypatch.setattr(status, "FUNCTION", "pg_sleep_of_nobody")
    assert run()[0] == 3
    monkeypatch.setattr(status, "FUNCTION", "observations_status")
    monkeypatch.setattr(status, "COLUMNS", ("no_such_column",))
    assert run()[0] == 3
    monkeypatch.undo()
    monkeypatch.setattr(status, "read_with", lambda cursor: cursor.execute("SELECT pg_sleep(2)"))
    monkeypatch.setattr(status, "LIMIT_MS", 50)
    assert run()[0] == 3


def test_the_probe_may_read_the_status_and_nothing_else(state) -> None:
    import psycopg

    with psycopg.connect(os.environ["MONITOR_DATABASE_URL"], autocommit=True) as probe:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            probe.execute("SELECT observations_status()")  # not before it takes the role
        probe.execute("SET ROLE memory_monitor")
        assert probe.execute("SELECT alarm FROM observations_status()").fetchone() == (False,)
        for sql in ("SELECT * FROM observations_observation", "SELECT observations_expire(1, now())"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                probe.execute(sql)


def test_the_endpoint_answers_200_503_and_503_unknown(world: World, state, monkeypatch) -> None:
    api = Api(world.principal, "monitor", superuser=world.superuser)
    answer = api.get("/v1/monitor/observations")
    assert answer.status_code == 200
    assert answer.json()["status"] == "ok"
    move_success(state, "-31 minutes")
    answer = api.get("/v1/monitor/observations")
    assert (answer.status_code, answer.json()["alarm_reasons"]) == (503, ["success_stale"])

    def fail() -> Any:
        raise Problem

    monkeypatch.setattr(status, "read", fail)
    answer = api.get("/v1/monitor/observations")
    assert (answer.status_code, answer.json()) == (503, {"status": "unknown"})
