"""The platform's own processes for tests from outside: what `make run` starts, in a folder that is gone after."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xmlrpc.client
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from supervisor.xmlrpc import SupervisorTransport

from tests.support import ROOT

PATIENCE = 300.0
"""Seconds; bounds a hang, asserts no speed."""
# What the suite says of its own servers must not reach the platform under test.
OF_THE_SUITE = re.compile(
    r"^(DATABASE_|MONITOR_DATABASE_|BROKER_URL|MEMORY_|PYTEST_|SECRET_KEY|DEMO|MAKE|MFLAGS)"
)


def outside() -> dict[str, str]:
    """The environment without the suite's own servers."""
    return {name: value for name, value in os.environ.items() if not OF_THE_SUITE.match(name)}


def wait(condition: Callable[[], Any], what: str = "it") -> Any:
    """The first true answer of the condition."""
    deadline = time.monotonic() + PATIENCE
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.2)
    return answer


class Stack:
    """One running installation: its address, secrets and processes."""

    def __init__(self, var: Path, variables: Mapping[str, str], *, demo: bool = False) -> None:
        self.var = var
        self.variables = outside() | {"MEMORY_VAR": str(var), "DEMO": str(int(demo))} | dict(variables)
        self._printed = var.parent / "printed"
        with self._printed.open("wb") as printed:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "memory_platform.run"],
                cwd=ROOT,
                env=self.variables,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self._printed.read_text()

    def until_announced(self) -> None:
        wait(lambda: "Ctrl-C stops" in self.output or self.process.poll() is not None, "the start")
        assert self.process.poll() is None, self.output

    @property
    def url(self) -> str:
        found = re.search(r"Admin\s+(http://\S+)/admin/", self.output)
        assert found, self.output
        return found[1]

    @property
    def token(self) -> str:
        return (self.var / "api_token").read_text().strip()

    @property
    def password(self) -> str:
        """Of the staff user `admin`."""
        return (self.var / "admin_password").read_text().strip()

    def client(self) -> httpx.Client:
        """The API with the first run's token."""
        return self.client_of(self.token)

    def client_of(self, token: str) -> httpx.Client:
        return httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {token}"}, timeout=60, trust_env=False
        )

    @contextmanager
    def admin(self) -> Iterator[httpx.Client]:
        """A browser without a screen, signed in as `admin`."""
        with httpx.Client(base_url=self.url, follow_redirects=True, timeout=60, trust_env=False) as client:
            client.get("/admin/login/")
            form = {
                "username": "admin",
                "password": self.password,
                "csrfmiddlewaretoken": client.cookies["csrftoken"],
                "next": "/admin/",
            }
            page = client.post("/admin/login/", data=form, headers={"Referer": f"{self.url}/admin/login/"})
            assert page.url.path == "/admin/", page.url
            yield client

    def manage(self, *arguments: str, **variables: str) -> str:
        """What a command of `manage.py` says, beside the running processes. Fails the test when it fails."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.command_variables() | variables,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def try_manage(self, *arguments: str, **variables: str) -> str:
        """What a command says that has to refuse. Fails the test when it does not."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.command_variables() | variables,
            capture_output=True,
            text=True,
        )
        assert done.returncode != 0, f"{done.stdout}\n{done.stderr}"
        return f"{done.stdout}\n{done.stderr}"

    def command_variables(self) -> dict[str, str]:
        """The environment in which an operator of this installation types commands."""
        variables = self.variables | {"ERASURE_FILE": str(self.var / "erasures.jsonl")}
        secrets = self.var / "secrets.json"
        if "SECRET_KEY" not in variables and secrets.exists():
            variables["SECRET_KEY"] = json.loads(secrets.read_text())["secret_key"]
        return variables

    def info(self, name: str) -> dict[str, Any]:
        """What supervisor knows of a process of the Procfile."""
        sockets = (self.var / "run" / "supervisor").resolve()
        transport = SupervisorTransport(None, None, f"unix://{sockets}/supervisor.sock")
        with xmlrpc.client.ServerProxy("http://localhost", transport=transport) as proxy:
            return dict(proxy.supervisor.getProcessInfo(name))  # type: ignore[arg-type]

    def pid(self, name: str) -> int:
        return int(self.info(name)["pid"])

    def stop(self) -> None:
        """Ctrl-C, and wait for the end."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(PATIENCE)


@contextmanager
def running_stack(*, demo: bool = False, port: int = 18000, **variables: str) -> Iterator[Stack]:
    """An installation from its first start on; stopped and removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="memory-stack-"))
    folder.chmod(0o711)
    stack = Stack(folder / "var", {"PORT": str(port), **variables}, demo=demo)
    try:
        stack.until_announced()
        yield stack
    finally:
        stack.stop()
        subprocess.run([ROOT / "scripts" / "clean"], env=stack.variables, check=False)
        shutil.rmtree(folder, ignore_errors=True)
