"""A supervisord as child of this process, told what to do over its unix socket."""

import contextlib
import os
import signal
import subprocess
import sys
import time
import xmlrpc.client
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from supervisor.xmlrpc import SupervisorTransport

from memory_platform.embedded import StartFailed

ANSWER_SECONDS = 20.0
STOP_SECONDS = 90.0  # more than the sum of what the processes may take
POLL_SECONDS = 0.1
LOG_TAIL_BYTES = 3000


class Supervision:
    def __init__(self, configuration: Path, socket: Path, logs: Path) -> None:
        self.configuration = configuration
        self.socket = socket
        self.logs = logs
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, environment: Mapping[str, str], folder: Path) -> None:
        """Start supervisord in a session of its own, so that Ctrl-C reaches it through this process only."""
        command = [sys.executable, "-m", "memory_platform.run.leash", sys.executable]
        command += ["-m", "supervisor.supervisord", "-n", "-c", str(self.configuration)]
        with (self.logs / "supervisord.start.log").open("wb") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=dict(environment),
                start_new_session=True,
            )
        deadline = time.monotonic() + ANSWER_SECONDS
        while not self._answers():
            if self.ended() or time.monotonic() > deadline:
                raise StartFailed(f"supervisord did not start.\n{self.log_tail('supervisord.start')}")
            time.sleep(POLL_SECONDS)

    def start_process(self, name: str) -> None:
        self._call("startProcess", name, False)

    def ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def stop(self) -> None:
        """Stop everything, the application before its servers, and wait for the end."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()  # its children end with it

    def log_tail(self, name: str) -> str:
        path = self.logs / f"{name}.log"
        if not path.exists():
            return ""
        with path.open("rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - LOG_TAIL_BYTES))
            return log.read().decode(errors="replace").strip()

    def _answers(self) -> bool:
        try:
            self._call("getState")
        except (OSError, xmlrpc.client.Error):
            return False
        return True

    def _call(self, method: str, *arguments: object) -> Any:
        transport = SupervisorTransport(None, None, f"unix://{self.socket}")
        with xmlrpc.client.ServerProxy("http://localhost", transport=transport) as proxy:
            return getattr(proxy.supervisor, method)(*arguments)
