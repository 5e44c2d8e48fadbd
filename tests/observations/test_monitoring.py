"""What monitors ask: the command's exit codes and the endpoint's answers."""

import json
import os
import subprocess
import sys
from io import StringIO
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from django.core.management import call_command

from apps.core.problems import Problem
from apps.observations import status
from memory_platform.embedded import temporary_postgres
from memory_platform.embedded.private_files import generated_secrets
from tests.conftest import ROOT
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


def test_a_wrong_password_is_exit_three(settings) -> None:
    """Against a server that asks for one."""
    with temporary_postgres() as server:
        right = server.url("admin", "postgres")
        psycopg.connect(right).close()
        secret = generated_secrets(server.secrets_file)["admin"]
        settings.MONITOR_DATABASE_URL = right.replace(quote(secret, safe=""), "another")
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(settings.MONITOR_DATABASE_URL)
        assert run() == (3, {"status": "unknown"})


@pytest.fixture
def status_function(state, monkeypatch) -> Any:
    """Has the monitor ask another function, whose body is given, in place of the journal's."""

    def define(body: str) -> None:
        state.execute(
            "CREATE OR REPLACE FUNCTION tests_status() RETURNS SETOF observations_maintenance_state LANGUAGE sql "
            f"SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ {body} $$; "
            "REVOKE ALL ON FUNCTION tests_status FROM PUBLIC; "
            "GRANT EXECUTE ON FUNCTION tests_status TO memory_monitor"
        )
        monkeypatch.setattr(status, "FUNCTION", "tests_status")

    yield define
    state.execute("DROP FUNCTION IF EXISTS tests_status")


@pytest.mark.parametrize(
    "body",
    [
        "SELECT * FROM public.observations_maintenance_state WHERE false",
        "SELECT * FROM public.observations_maintenance_state",
        "SELECT s.* FROM public.observations_maintenance_state s, pg_sleep(60)",
    ],
    ids=["empty", "other columns", "too late"],
)
def test_an_answer_that_says_nothing_or_comes_too_late_is_exit_three(
    status_function, monkeypatch, body: str
) -> None:
    status_function(body)
    monkeypatch.setattr(status, "LIMIT_MS", 200)
    assert run() == (3, {"status": "unknown"})


def test_the_command_as_a_monitor_runs_it(state) -> None:
    """Its exit codes are a process's; standard output is one line, whatever happens."""
    for address, code, said in (
        (os.environ["MONITOR_DATABASE_URL"], 0, "ok"),
        ("postgresql:///memory?host=/nowhere&user=memory_probe", 3, "unknown"),
    ):
        done = subprocess.run(
            [sys.executable, "manage.py", "observation_status"],
            cwd=ROOT,
            env={**os.environ, "MONITOR_DATABASE_URL": address},
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stderr
        (line,) = done.stdout.splitlines()
        assert json.loads(line)["status"] == said
        assert "nowhere" not in done.stderr


def test_the_probe_may_read_the_status_and_nothing_else(state) -> None:
    with psycopg.connect(os.environ["MONITOR_DATABASE_URL"], autocommit=True) as probe:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            probe.execute("SELECT observations_status()")  # not before it takes the role
        probe.execute("SET ROLE memory_monitor")
        assert probe.execute("SELECT alarm FROM observations_status()").fetchone() == (False,)
        tables = state.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v') "
            "AND (relname LIKE 'observation%' OR relname LIKE 'traces%' OR relname LIKE 'accounts%')"
        ).fetchall()
        assert len(tables) > 15
        for sql in (
            "SELECT observations_expire(1, now())",
            *(f"SELECT FROM {table}" for (table,) in tables),
        ):
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
