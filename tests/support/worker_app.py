"""The platform's Celery application with tasks for tests, for workers and beats that tests start."""

import os
import time
from datetime import timedelta
from pathlib import Path

import django

from memory_platform.celery import app

django.setup()

from apps.operations.tasks_base import every, task  # noqa: E402

__all__ = ["app", "mark", "tick"]


def _note(name: str, line: str) -> None:
    with (Path(os.environ["MEMORY_TEST_MARKS"]) / name).open("a") as file:
        file.write(line + "\n")


@task(
    name="tests.mark",
    lease=timedelta(seconds=12),
    soft_limit=timedelta(seconds=9),
    hard_limit=timedelta(seconds=10),
    misfire="run_once",
)
def mark(number: int) -> dict[str, int]:
    """Leaves a mark, and lasts as long as there is a file `hold`."""
    _note("marks", f"{number} {os.getpid()}")
    while (Path(os.environ["MEMORY_TEST_MARKS"]) / "hold").exists():
        time.sleep(0.05)
    return {"marks": 1}


@task(
    name="tests.tick",
    schedule=every(seconds=1),
    lease=timedelta(seconds=12),
    soft_limit=timedelta(seconds=9),
    hard_limit=timedelta(seconds=10),
    misfire="run_once",
)
def tick() -> None:
    _note("ticks", "tick")
