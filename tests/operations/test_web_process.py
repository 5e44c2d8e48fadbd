"""The web server as it is run: heartbeats of its workers, counters that are one, a refusal to serve unsafely."""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from apps.operations.models import Process
from apps.operations.selectors import live_processes
from tests.conftest import ROOT
from tests.support.factories import make_token, make_world

pytestmark = pytest.mark.django_db(transaction=True)

# Of this database alone: roles are shared by all databases of the server, and so by tests that run beside.
LOOSEN = "GRANT SELECT ON accounts_principal TO memory_app"
MEND = "REVOKE SELECT ON accounts_principal FROM memory_app"

SECONDS = 90.0


class Web:
    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = folder / "log"
        (folder / "static").mkdir()
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "gunicorn", "memory_platform.wsgi:application"),
                *("--config", "python:memory_platform.web_process"),
                *("--bind", f"127.0.0.1:{self.port}", "--workers", "2", "--threads", "2"),
                *("--worker-class", "gthread", "--no-control-socket"),
            ],
            cwd=ROOT,
            env={**os.environ, "DATABASE_POOL_MAX": "4", "MEMORY_VAR": str(folder)},
            stdout=self.log.open("wb"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        found = answer.status, answer.read().decode()
        connection.close()
        return found

    def wait_until_live(self, workers: int) -> None:
        deadline = time.monotonic() + SECONDS
        while live_processes().filter(kind="web").count() < workers:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(10)


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    started = Web(tmp_path)
    yield started
    started.stop()


def test_workers_report_and_count_together(web) -> None:
    web.wait_until_live(2)
    for _ in range(12):
        assert web.get("/health/live") == (200, '{"status":"ok"}')
    token = make_token(make_world().principal, "monitor")
    for _ in range(3):
        status, text = web.get("/metrics", Authorization=f"Bearer {token}")
        assert status == 200
        counted = {
            sample.labels["route"]: sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == "memory_http_requests_total"
        }
        assert counted["health/live"] == 12
    web.stop()
    assert not Process.objects.filter(kind="web").exists()
    lines = web.log.read_text().splitlines()
    assert all(line.startswith("{") for line in lines), lines


def test_an_unsafe_database_is_refused_and_named(tmp_path, admin_connection) -> None:
    admin_connection.execute(LOOSEN)
    try:
        web = Web(tmp_path)
        assert web.process.wait(SECONDS) != 0
        assert not Process.objects.exists()
        log = web.log.read_text()
        assert "UnsafeDatabase" in log
        assert "accounts_principal" in log
    finally:
        admin_connection.execute(MEND)
