"""Real workers, a real beat and a real Valkey: what is killed comes back, nothing is lost."""

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import redis
from django.db.models import QuerySet
from kombu import pools

from apps.operations import runs
from apps.operations.models import JobRun, Process
from apps.operations.selectors import live_processes
from apps.operations.tasks_base import send_call
from memory_platform.celery import app
from memory_platform.embedded import EmbeddedValkey, redis_client_url, temporary_valkey
from tests.conftest import ROOT

pytestmark = pytest.mark.django_db(transaction=True)

# Of this database alone: roles are shared by all databases of the server, and so by tests that run beside.
LOOSEN = "GRANT SELECT ON accounts_principal TO memory_app"
MEND = "REVOKE SELECT ON accounts_principal FROM memory_app"

SECONDS = 90.0


def wait_for(answer: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not answer():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.1)


class Platform:
    """Starts processes of the platform over the test's database and a broker of its own."""

    def __init__(self, folder: Path, valkey: EmbeddedValkey) -> None:
        self.folder, self.valkey, self.broker = folder, valkey, valkey.url
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", "tests.support.worker_app", *arguments],
            cwd=ROOT,
            env={**os.environ, "BROKER_URL": self.broker, "MEMORY_TEST_MARKS": str(self.folder)},
            stdout=(self.folder / "log").open("ab"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def worker(self) -> "subprocess.Popen[bytes]":
        return self.start("worker", "--concurrency", "1", "--without-gossip", "--without-mingle")

    def beat(self) -> "subprocess.Popen[bytes]":
        return self.start("beat", "--pidfile=", "--max-interval", "1")

    def kill_valkey(self) -> None:
        server = self.valkey._server.process
        assert server is not None
        server.kill()
        server.wait(10)

    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def stop(self) -> None:
        for process in self.processes:
            kill(process)


def kill(process: "subprocess.Popen[bytes]") -> None:
    """All of it at once, without a chance to tidy up."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)


def use_broker(url: str) -> None:
    """Have this process send there; connections to another broker are forgotten."""
    celery: Any = app
    celery.conf.broker_url = url
    pools.reset()
    celery._pool = celery.amqp._producer_pool = None


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    with temporary_valkey(durable=True) as valkey:
        before = app.conf.broker_url
        use_broker(valkey.url)
        started = Platform(tmp_path, valkey)
        try:
            yield started
        finally:
            started.stop()
            use_broker(before)


@pytest.fixture
def mark():
    from apps.operations import declarations
    from tests.support import worker_app

    yield worker_app.mark
    for name in ("tests.mark", "tests.tick"):
        declarations.remove(name)
    # Declared again when imported again.
    sys.modules.pop("tests.support.worker_app", None)


def marks() -> "QuerySet[JobRun]":
    """Runs of the test's task; a worker that starts may send tasks of the platform, too."""
    return JobRun.objects.filter(name="tests.mark")


def sweep() -> int:
    return runs.sweep_lost(lambda declaration, call: send_call(declaration, call))


def test_a_worker_killed_in_the_midst_of_a_task_leaves_it_to_the_next(platform, mark) -> None:
    hold = platform.folder / "hold"
    hold.touch()
    first = platform.worker()
    mark.delay(7)
    wait_for(lambda: platform.lines("marks"), "the first mark")
    assert [process.kind for process in live_processes()] == ["worker"]
    run = marks().get()
    assert (run.outcome, run.process_id) == ("running", Process.objects.get().pk)
    kill(first)
    hold.unlink()
    assert sweep() == 0  # its lease and its heartbeat still count
    platform.worker()
    wait_for(sweep, "the lease's end")
    wait_for(lambda: marks().filter(outcome="succeeded").exists(), "the second run")
    outcomes = marks().order_by("started_at").values_list("outcome", "attempt")
    assert list(outcomes) == [("lost", 0), ("succeeded", 1)]
    assert len(platform.lines("marks")) == 2


def test_a_killed_child_gives_its_message_back_and_it_runs_once_more(platform, mark) -> None:
    hold = platform.folder / "hold"
    hold.touch()
    platform.worker()
    mark.delay(1)
    wait_for(lambda: platform.lines("marks"), "the first mark")
    os.kill(int(platform.lines("marks")[0].split()[1]), signal.SIGKILL)
    hold.unlink()
    wait_for(lambda: marks().filter(outcome="succeeded").exists(), "the second run")
    wait_for(sweep, "the lost run")
    assert len(platform.lines("marks")) == 2
    assert marks().filter(outcome="succeeded").count() == 1


def test_what_a_killed_valkey_acknowledged_is_there_again(platform, mark) -> None:
    mark.delay(1)
    platform.kill_valkey()
    platform.valkey.start()
    platform.worker()
    wait_for(lambda: platform.lines("marks"), "the mark of before")
    platform.kill_valkey()
    platform.valkey.start()
    mark.delay(2)
    wait_for(lambda: len(platform.lines("marks")) == 2, "the mark after, by the same worker")


def test_beat_keeps_its_schedule_over_a_kill(platform, mark) -> None:
    platform.worker()
    first = platform.beat()
    wait_for(lambda: len(platform.lines("ticks")) >= 2, "two ticks")
    kill(first)
    before = len(platform.lines("ticks"))
    platform.beat()
    wait_for(lambda: len(platform.lines("ticks")) >= before + 3, "further ticks")
    assert {process.kind for process in live_processes()} == {"worker", "beat"}


def test_the_broker_holds_ids_and_numbers(platform, mark) -> None:
    one = uuid4()
    mark.delay(one)
    with redis.Redis.from_url(redis_client_url(platform.broker)) as client:
        (message,) = client.lrange("memory", 0, -1)
    body = json.loads(base64.b64decode(json.loads(message)["body"]))
    assert body[:2] == [[str(one)], {}]


@pytest.mark.parametrize("kind", ["worker", "beat"])
def test_an_unsafe_database_is_refused_and_named(platform, mark, admin_connection, kind) -> None:
    admin_connection.execute(LOOSEN)
    try:
        process = getattr(platform, kind)()
        assert process.wait(SECONDS) != 0
        assert not Process.objects.exists()
        assert "UnsafeDatabase" in (platform.folder / "log").read_text()
        assert "accounts_principal" in (platform.folder / "log").read_text()
    finally:
        admin_connection.execute(MEND)


def test_a_database_that_does_not_answer_is_no_safe_one(platform, mark, monkeypatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://memory_app@/memory?host=/nonexistent")
    assert platform.worker().wait(SECONDS) != 0
