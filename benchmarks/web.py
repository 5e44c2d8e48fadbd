"""A web server of the benchmarks' own, as the product's `web` process runs, and clients of it."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.database import ROOT

WORKERS, THREADS = 2, 8
SECONDS_TO_START = 90.0


@dataclass(frozen=True, slots=True)
class Load:
    """What concurrent clients saw: milliseconds of each search, and how long all of it took."""

    times: list[float]
    errors: int
    seconds: float


class Client:
    """One keep-alive connection with a token."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def search(self, query: str, limit: int) -> bool:
        """Whether the search was answered with its trace committed."""
        body = json.dumps({"query": query, "limit": limit})
        self._connection.request("POST", "/v1/search", body, self._headers)
        answer = self._connection.getresponse()
        document = json.loads(answer.read())
        return answer.status == 200 and bool(document.get("trace_id"))


@contextmanager
def web_server(application: str = "memory_platform.wsgi:application", **environment: str) -> Iterator[int]:
    """The port of a running server on the database of the environment; without limits of calls a minute."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    limits = dict.fromkeys(("THROTTLE_TOKEN_PER_MINUTE", "THROTTLE_ADDRESS_PER_MINUTE"), "0")
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "gunicorn", application),
                *("--config", "python:memory_platform.web_process", "--bind", f"127.0.0.1:{port}"),
                *("--worker-class", "gthread", "--workers", str(WORKERS), "--threads", str(THREADS)),
                "--no-control-socket",
            ],
            cwd=ROOT,
            env={**os.environ, **limits, **environment},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _wait(port, process)
            yield port
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def _wait(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("GET", "/health/live")
            connection.getresponse().read()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit("The web server did not start.")
            time.sleep(0.2)


def concurrently(port: int, token: str, queries: list[str], *, clients: int, limit: int) -> Load:
    """All queries, shared out among so many clients."""
    times: list[float] = []
    failures: list[int] = []
    shares = [queries[number::clients] for number in range(clients)]

    def work(share: list[str]) -> None:
        client = Client(port, token)
        for query in share:
            start = time.perf_counter()
            try:
                good = client.search(query, limit)
            except (OSError, http.client.HTTPException, ValueError):
                good = False
            times.append((time.perf_counter() - start) * 1000)
            if not good:
                failures.append(1)

    threads = [threading.Thread(target=work, args=(share,)) for share in shares]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Load(times, len(failures), time.perf_counter() - start)


def token_of(identity: object, *scopes: str) -> str:
    """A new token of a principal."""
    from django.contrib.auth.models import User

    from apps.accounts.models import Principal
    from apps.accounts.services import create_token
    from apps.core.db.sessions import staff_session

    root = User.objects.filter(is_superuser=True).first()
    assert root is not None
    with staff_session(root):
        owner = Principal.objects.defer("hash_key").get(pk=identity.principal_id)  # type: ignore[attr-defined]
        return create_token(name="benchmark", scopes=list(scopes), principal=owner).secret


def processor_ms(pid: int) -> float:
    """Processor time that a process has used, in milliseconds (Linux)."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6
