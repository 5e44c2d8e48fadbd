"""`make run` as a person types it: a checkout at a path with a space, the port taken, processes killed."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
import xmlrpc.client
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
import pytest
from supervisor.xmlrpc import SupervisorTransport

pytestmark = pytest.mark.installation

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE = 300.0  # seconds; bounds a hang, asserts no speed
PROCESSES = ("postgres", "valkey", "web", "worker", "beat")
# What the suite says of its own servers must not reach the platform under test.
OF_THE_SUITE = re.compile(r"^(DATABASE_|MONITOR_DATABASE_|BROKER_URL|MEMORY_|PYTEST_|SECRET_KEY|MAKE|MFLAGS)")


@pytest.fixture
def checkout() -> Iterator[Path]:
    """The working tree's files below a path with a space, with the installed environment."""
    folder = Path(tempfile.mkdtemp(prefix="memory platform "))
    folder.chmod(0o711)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    (folder / ".venv").symlink_to((ROOT / ".venv").resolve())
    yield folder
    cleaned = subprocess.run(["make", "clean"], cwd=folder, env=environment(), check=False)
    left = (folder / "var").exists()
    shutil.rmtree(folder, ignore_errors=True)
    assert cleaned.returncode == 0
    assert not left


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not OF_THE_SUITE.match(name)}


class Running:
    """A `make run` and what it has printed so far."""

    def __init__(self, checkout: Path, port: int) -> None:
        self.var = checkout / "var"
        self.printed = checkout / "printed"
        self.process = subprocess.Popen(
            ["make", "run", "DEMO=0", f"PORT={port}"],
            cwd=checkout,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=self.printed.open("wb"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def output(self) -> str:
        return self.printed.read_text()

    def until_announced(self) -> str:
        wait(lambda: "Ctrl-C stops" in self.output() or self.process.poll() is not None)
        assert self.process.poll() is None, self.output()
        return self.output()

    def info(self, name: str) -> dict[str, object]:
        sockets = (self.var / "run" / "supervisor").resolve()
        transport = SupervisorTransport(None, None, f"unix://{sockets}/supervisor.sock")
        with xmlrpc.client.ServerProxy("http://localhost", transport=transport) as proxy:
            return dict(proxy.supervisor.getProcessInfo(name))  # type: ignore[arg-type]

    def pid(self, name: str) -> int:
        return int(str(self.info(name)["pid"]))

    def interrupt(self) -> None:
        """Ctrl-C: the terminal signals the whole foreground group."""
        os.killpg(self.process.pid, signal.SIGINT)
        self.process.wait(PATIENCE)


def wait(condition: "object") -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.2)


@contextmanager
def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def address(output: str) -> tuple[str, int]:
    found = re.search(r"Admin\s+http://([\d.]+):(\d+)/admin/", output)
    assert found, output
    return found[1], int(found[2])


def web_answers(host: str, port: int) -> bool:
    try:
        connection = http.client.HTTPConnection(host, port, timeout=5)
        connection.request("GET", "/health/live")
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False


def database_answers(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def check_first_output(run: Running, wished: int) -> None:
    output = run.until_announced()
    assert f"Port {wished} is taken" in output
    assert address(output)[1] != wished
    for name in ("admin_password", "api_token", "secrets.json", "connections.json", "erasures.jsonl"):
        assert stat.S_IMODE((run.var / name).stat().st_mode) == 0o600, name
    for name in ("admin_password", "api_token"):
        assert (run.var / name).read_text().strip() in output


def check_curl_lines(run: Running) -> None:
    """The lines as printed, in a shell elsewhere."""
    lines = [line for line in run.output().splitlines() if line.startswith("curl ")]
    assert len(lines) == 3
    for line in lines:
        ran = subprocess.run(
            f"{line} --fail-with-body", shell=True, cwd="/", capture_output=True, check=False
        )
        assert ran.returncode == 0, ran.stdout
        assert json.loads(ran.stdout)


def check_logins(run: Running) -> None:
    """Web, worker and beat know the login memory_app and no other."""
    for name in ("web", "worker", "beat"):
        known = "\n".join(psutil.Process(run.pid(name)).environ().values())
        assert "memory_app:" in known
        assert not re.search("memory_(owner|admin|probe):", known)
    assert "SECRET_KEY" not in psutil.Process(run.pid("postgres")).environ()


def check_killed_process_returns(run: Running, name: str) -> None:
    before = run.pid(name)
    os.kill(before, signal.SIGKILL)
    wait(lambda: run.info(name)["statename"] == "RUNNING" and run.pid(name) != before)
    host, port = address(run.output())
    wait(lambda: web_answers(host, port))
    wait(lambda: database_answers(json.loads((run.var / "connections.json").read_text())["app"]))
    assert all(run.info(other)["statename"] in ("RUNNING", "STARTING") for other in PROCESSES)


def check_stop(run: Running) -> None:
    """Everything ends, also what a killed process left, and the application before its servers."""
    assert len(processes_below(run.var.parent)) > len(PROCESSES)
    run.interrupt()
    wait(lambda: not processes_below(run.var.parent))
    log = (run.var / "log" / "supervisord.log").read_text()
    stopped = re.findall(r" stopped: (\w+)", log)[-len(PROCESSES) :]
    assert set(stopped[:3]) == {"web", "worker", "beat"}, log


def check_nothing_outlives_its_supervision(run: Running) -> None:
    """No orphan holds the port and the data folder after even the supervisor was killed."""
    supervisor = int((run.var / "run" / "supervisord.pid").read_text())
    os.kill(supervisor, signal.SIGKILL)
    run.process.wait(PATIENCE)
    wait(lambda: not processes_below(run.var.parent))
    assert run.process.returncode != 0


def processes_below(folder: Path) -> list[psutil.Process]:
    """Processes that work in the folder: the platform's by the checkout, PostgreSQL's by its data."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if Path(process.cwd()).is_relative_to(folder):
                found.append(process)
    return found


def test_make_run_from_the_first_start_to_the_second(checkout: Path) -> None:
    with taken_port() as port:
        run = Running(checkout, port)
        try:
            check_first_output(run, port)
            check_curl_lines(run)
            check_logins(run)
            for name in PROCESSES:
                check_killed_process_returns(run, name)
            second = subprocess.run(["make", "run"], cwd=checkout, env=environment(), capture_output=True)
            assert b"runs already" in second.stderr
            check_stop(run)
            token = (run.var / "api_token").read_text()
            run = Running(checkout, port)
            output = run.until_announced()
            assert "shown once" not in output
            assert (run.var / "api_token").read_text() == token
            check_nothing_outlives_its_supervision(run)
        finally:
            if run.process.poll() is None:
                run.interrupt()
