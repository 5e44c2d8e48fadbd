"""The web server as it is run, over the test's database, in processes that a test may kill."""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from apps.operations.selectors import live_processes
from tests.support import ROOT

SECONDS = 90.0
"""Bounds a hang, asserts no speed."""
SERVED = "memory_platform.wsgi:application"


class Web:
    def __init__(self, folder: Path, application: str = SERVED, **variables: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = folder / "log"
        (folder / "static").mkdir()
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "gunicorn", application),
                *("--config", "python:memory_platform.web_process"),
                *("--bind", f"127.0.0.1:{self.port}", "--workers", "2", "--threads", "2"),
                *("--worker-class", "gthread", "--no-control-socket"),
            ],
            cwd=ROOT,
            env={**os.environ, "DATABASE_POOL_MAX": "4", "MEMORY_VAR": str(folder), **variables},
            stdout=self.log.open("wb"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        return self.call("GET", path, None, headers)

    def call(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> tuple[int, str]:
        """Status and body. Raises what the client library does where the server hangs up."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def wait_until_live(self, workers: int) -> None:
        deadline = time.monotonic() + SECONDS
        while live_processes().filter(kind="web").count() < workers:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.1)

    def workers(self) -> list[int]:
        """Processes that serve now."""
        return [child.pid for child in psutil.Process(self.process.pid).children()]

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(10)


@contextmanager
def running_web(folder: Path, application: str = SERVED, **variables: str) -> Iterator[Web]:
    """Two workers of two threads each, that serve."""
    web = Web(folder, application, **variables)
    try:
        web.wait_until_live(2)
        yield web
    finally:
        web.stop()
