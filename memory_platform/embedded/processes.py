"""A server as a child of this process, for tests and commands; under `make run`, supervisor holds them."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memory_platform.embedded.exceptions import StartFailed
from memory_platform.embedded.leftovers import POLL_SECONDS

STOP_SECONDS = 30.0
LOG_TAIL_BYTES = 2000
_PR_SET_PDEATHSIG = 1  # prctl(2)


class RunningServer:
    def __init__(self, log_file: Path, stop_signal: str) -> None:
        self.log_file = log_file
        self.stop_signal = signal.Signals[stop_signal]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, command: list[str], **options: Any) -> None:
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **options
            )

    def wait_for(self, answers: Callable[[], bool], seconds: float) -> None:
        """Wait until the server answers; stop it and raise StartFailed when it does not."""
        deadline = time.monotonic() + seconds
        while not answers():
            ended = self.process is None or self.process.poll() is not None
            if ended or time.monotonic() > deadline:
                self.stop()
                raise StartFailed(f"The server did not start. The end of its log:\n{self.log_tail()}")
            time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(self.stop_signal)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def log_tail(self) -> str:
        with self.log_file.open("rb") as log:
            log.seek(max(0, self.log_file.stat().st_size - LOG_TAIL_BYTES))
            return log.read().decode(errors="replace").strip()


def end_with_parent(stop_signal: signal.Signals) -> None:
    """Have the kernel send this process a signal when its parent dies, whatever it executes later.

    Without it, processes outlive a supervisor that was killed, hold their port and data folder, and keep the
    next start from working. A change of user clears it, so call it afterwards. Linux only: elsewhere nothing.
    """
    if sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(stop_signal), 0, 0, 0)
    if os.getppid() != parent:  # it died just before
        os.kill(os.getpid(), stop_signal)
