"""The circuit of the journal's writes: a stalled journal costs a few searches a little, and then nothing."""

import threading
import time
from collections import deque

FAILURES = 3
WINDOW_SECONDS = 30.0
REST_SECONDS = 30.0


def monotonic() -> float:
    """Seconds of this process; tests move it."""
    return time.monotonic()


class Circuit:
    """Opens for 30 s when three writes within 30 s failed or timed out. One a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failures: deque[float] = deque(maxlen=FAILURES)
        self._open_until = 0.0

    @property
    def closed(self) -> bool:
        """Whether writes are let through."""
        return monotonic() >= self._open_until

    def failed(self) -> None:
        now = monotonic()
        with self._lock:
            self._failures.append(now)
            if len(self._failures) == FAILURES and now - self._failures[0] <= WINDOW_SECONDS:
                self._open_until = now + REST_SECONDS
                self._failures.clear()

    def reset(self) -> None:
        with self._lock:
            self._failures.clear()
            self._open_until = 0.0


circuit = Circuit()
