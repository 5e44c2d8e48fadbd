"""Declares tasks for one test, without a worker."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from apps.operations import declarations, runs
from apps.operations.declarations import Declaration


class Sent:
    """What a run sent again, in place of a broker."""

    def __init__(self) -> None:
        self.calls: list[tuple[runs.Call, float]] = []

    def __call__(self, call: runs.Call, seconds: float) -> None:
        self.calls.append((call, seconds))


@contextmanager
def declared_task(
    function: Callable[..., Any], name: str = "tests.task", **more: Any
) -> Iterator[Declaration]:
    """A declaration that is known while the block runs; `more` overrides its members."""
    members = {
        "schedule": None,
        "lease": timedelta(minutes=5),
        "soft_limit": timedelta(minutes=1),
        "hard_limit": timedelta(minutes=2),
        "misfire": "run_once",
        "freshness": timedelta(minutes=30),
    }
    declaration = Declaration(name=name, function=function, **(members | more))
    declarations.add(declaration)
    try:
        yield declaration
    finally:
        declarations.remove(name)
