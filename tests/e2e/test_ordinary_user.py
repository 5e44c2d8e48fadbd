"""The two commands of the README, from a fresh clone and an empty environment, as a user without any rights."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.stack import wait

pytestmark = [pytest.mark.installation, pytest.mark.timeout(600)]

USER = "nobody"
RUNUSER = shutil.which("runuser")
# How this machine reaches its packages; nothing else of the environment counts.
KEPT = re.compile(r"^(PIP_|SSL_CERT|REQUESTS_CA|HTTPS?_PROXY|NO_PROXY)", re.IGNORECASE)


def variables(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if KEPT.match(name)}
    return kept | {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8"}


def as_user(command: str, folder: Path) -> list[str]:
    return [str(RUNUSER), "-u", USER, "--", "sh", "-c", f"cd '{folder}' && {command}"]


@pytest.fixture
def clone() -> Iterator[Path]:
    if os.geteuid() != 0 or RUNUSER is None:
        pytest.skip("only root can become another user")
    home = Path(tempfile.mkdtemp(prefix="ordinary-"))
    folder = home / "clone"
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(folder)], check=True)
    subprocess.run(["chown", "-R", USER, str(home)], check=True)
    able = subprocess.run(
        as_user("python3 -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))'", home),
        env=variables(home),
        capture_output=True,
        check=False,
    )
    try:
        if able.returncode:
            pytest.skip("the system has no Python 3.11 with venv that an ordinary user may run")
        yield folder
    finally:
        shutil.rmtree(home, ignore_errors=True)


class Run:
    """`make run`, typed by the user."""

    def __init__(self, folder: Path, port: int) -> None:
        self.printed = folder / "printed"
        self.process = subprocess.Popen(
            as_user(f"exec make run PORT={port}", folder),
            env=variables(folder.parent),
            stdin=subprocess.DEVNULL,
            stdout=self.printed.open("wb"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def output(self) -> str:
        return self.printed.read_text()

    def until_announced(self) -> float:
        """Seconds until the addresses were printed."""
        started = time.monotonic()
        deadline = started + 300
        while "Ctrl-C stops" not in self.output():
            assert self.process.poll() is None, self.output()
            assert time.monotonic() < deadline, self.output()
            time.sleep(0.2)
        return time.monotonic() - started

    def stop(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
            self.process.wait(90)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def searched(run: Run) -> list[str]:
    """Node ids that the printed line of a search finds, in a shell elsewhere."""
    line = next(line for line in run.output().splitlines() if line.startswith("curl ") and "search" in line)
    ran = subprocess.run(f"{line} --fail-with-body", shell=True, cwd="/", capture_output=True, check=False)
    assert ran.returncode == 0, ran.stdout
    return [row["node_id"] for row in json.loads(ran.stdout)["results"]]


def test_both_commands_need_nothing_but_python_and_make(clone: Path) -> None:
    port = free_port()
    run = Run(clone, port)
    try:
        first = run.until_announced()
        found = wait(lambda: searched(run), "the demo memory")
        lines = run.output()
    finally:
        run.stop()
    run = Run(clone, port)
    try:
        second = run.until_announced()
        assert "shown once" in lines
        assert "shown once" not in run.output()
        assert set(searched(run)) == set(found)
    finally:
        run.stop()
    tested = subprocess.run(
        as_user(
            "scripts/venv base dev && exec .venv/bin/python -m pytest -q tests/core/test_sessions.py", clone
        ),
        env=variables(clone.parent),
        capture_output=True,
        text=True,
        check=False,
    )
    assert tested.returncode == 0, tested.stdout[-3000:] + tested.stderr[-3000:]
    assert re.search(r"\d+ passed", tested.stdout)
    print(f"announced after {first:.1f} s the first time, {second:.1f} s the second")
