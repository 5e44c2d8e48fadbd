"""Times and processor time of calls."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Measured:
    """Milliseconds of each call, and the mean processor time of one in Python and in PostgreSQL."""

    times: list[float]
    python: float
    postgres: float

    @property
    def p50(self) -> float:
        return median(self.times)

    @property
    def processor(self) -> float:
        return self.python + self.postgres

    def show(self, label: str) -> None:
        print(
            f"  {label:<36} p50 {self.p50:7.2f} ms   p95 {percentile(self.times, 0.95):7.2f} ms   "
            f"processor {self.python:6.2f} + {self.postgres:6.2f} ms"
        )


def measured(call: Callable[[Any], Any], requests: list[Any]) -> Measured:
    from django.db import connection

    from benchmarks.web import processor_ms

    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    python, postgres = time.thread_time(), processor_ms(pid)
    times = timed(call, requests)
    count = len(requests)
    return Measured(
        times, (time.thread_time() - python) * 1000 / count, (processor_ms(pid) - postgres) / count
    )


def in_turn(calls: dict[str, Callable[[Any], Any]], requests: list[Any]) -> dict[str, Measured]:
    """Each call with the first request, each with the second, and so on, so that all of them meet the same machine."""
    from django.db import connection

    from benchmarks.web import processor_ms

    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    times: dict[str, list[float]] = {name: [] for name in calls}
    python, postgres = dict.fromkeys(calls, 0.0), dict.fromkeys(calls, 0.0)
    for request in requests:
        for name, call in calls.items():
            own, theirs, start = time.thread_time(), processor_ms(pid), time.perf_counter()
            call(request)
            times[name].append((time.perf_counter() - start) * 1000)
            python[name] += (time.thread_time() - own) * 1000
            postgres[name] += processor_ms(pid) - theirs
    count = len(requests)
    return {name: Measured(times[name], python[name] / count, postgres[name] / count) for name in calls}


def timed(call: Callable[[Any], Any], requests: list[Any]) -> list[float]:
    """Milliseconds of each call."""
    times = []
    for request in requests:
        start = time.perf_counter()
        call(request)
        times.append((time.perf_counter() - start) * 1000)
    return times


def median(times: list[float]) -> float:
    return statistics.median(times)


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[int(len(times) * share)]


def show(label: str, times: list[float]) -> None:
    print(f"  {label:<36} p50 {median(times):7.2f} ms   p95 {percentile(times, 0.95):7.2f} ms")
