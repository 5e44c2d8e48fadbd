"""A real copy of the database, taken with a fresh heartbeat: no process of the platform starts on it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import connections

from apps.core.db import provision
from tests.conftest import DATABASE, ROOT
from tests.observations.test_expiry import call_expire
from tests.support import journal
from tests.support.factories import World
from tests.support.journal import record

pytestmark = pytest.mark.django_db(transaction=True)

COPY = "copied"
SECONDS = 120.0
WEB = ("gunicorn", "memory_platform.wsgi:application", "--config", "python:memory_platform.web_process")
WEB += ("--bind", "127.0.0.1:0", "--workers", "1", "--worker-class", "gthread", "--no-control-socket")
CELERY = ("celery", "-A", "memory_platform")
PROCESSES = {
    "web": WEB,
    "worker": (*CELERY, "worker", "--concurrency", "1", "--without-gossip", "--without-mingle"),
    "beat": (*CELERY, "beat", "--pidfile="),
}


@pytest.fixture
def copy(world: World, request: pytest.FixtureRequest) -> Iterator[str]:
    """The copy as an operator makes it: files of the database, then its rights. Its owner's URL."""
    server = request.config.memory_server  # type: ignore[attr-defined]
    with psycopg.connect(server.url("memory_owner", DATABASE), autocommit=True) as owner:
        record(owner, world.principal, text="kept")
    call_expire()
    connections.close_all()
    with psycopg.connect(server.url("memory_admin", "postgres"), autocommit=True) as admin:
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [DATABASE])
        admin.execute(f"CREATE DATABASE {COPY} TEMPLATE {DATABASE}")
        try:
            with psycopg.connect(server.url("memory_admin", COPY), autocommit=True) as there:
                provision.provision(there, COPY)
            yield server.url("memory_owner", COPY)
        finally:
            admin.execute(f"DROP DATABASE {COPY} WITH (FORCE)")
    with (
        psycopg.connect(server.url("memory_owner", DATABASE), autocommit=True) as owner,
        journal.reset_state(owner),
    ):
        pass


def ended(kind: str, owner_url: str, folder: Path) -> tuple[int, str]:
    """How a process over the copy ended, and what it said."""
    place = folder / kind
    (place / "static").mkdir(parents=True)
    process = subprocess.Popen(
        [sys.executable, "-m", *PROCESSES[kind]],
        cwd=ROOT,
        env={
            **os.environ,
            "DATABASE_URL": owner_url.replace("memory_owner", "memory_app"),
            "DATABASE_POOL_MAX": "2",
            "BROKER_URL": "redis://127.0.0.1:1/0",
            "MEMORY_VAR": str(place),
        },
        stdout=(place / "log").open("wb"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        return process.wait(SECONDS), (place / "log").read_text()
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


def test_web_worker_and_beat_refuse_a_copy_and_name_the_commands(copy: str, tmp_path: Path) -> None:
    with psycopg.connect(copy) as owner:
        fresh = owner.execute(
            "SELECT last_success_at > now() - interval '5 minutes' FROM observations_maintenance_state"
        )
        assert fresh.fetchone() == (True,)
    for kind in PROCESSES:
        code, said = ended(kind, copy, tmp_path)
        assert code != 0, kind
        assert "UnsafeDatabase" in said, said
        assert "journal_gate drain --erasures FILE" in said, said
        assert "journal_gate open" in said, said
    with psycopg.connect(copy) as owner:
        assert owner.execute("SELECT count(*) FROM operations_process").fetchone() == (0,)
