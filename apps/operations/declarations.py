"""What a background task declares of itself, and the registry of all of them."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Any, Literal
from uuid import UUID

from django.utils.module_loading import autodiscover_modules

from apps.core import canonical
from apps.operations.schedules import Schedule

Counts = Mapping[str, int] | None
Misfire = Literal["skip", "run_once"]

# Redis gives an unacknowledged message to another worker after this long, so no run may last longer.
LONGEST_RUN = timedelta(minutes=50)
MISSED_RUNS = 2  # observations: stale after two missed runs


class DeclarationError(ValueError):
    """A task is declared against the rules. Raised at import."""


class TextInArguments(TypeError):
    """An argument of a task is not an id or a number. The broker must never hold text."""


@dataclass(frozen=True, slots=True)
class Retry:
    """After a failure of one of the kinds, run again after each delay in turn (seconds)."""

    delays: tuple[int, ...] = ()
    on: tuple[type[Exception], ...] = (Exception,)

    def delay_after(self, error: Exception, attempt: int) -> int | None:
        """Seconds until the next attempt, or None when there is none."""
        if attempt < len(self.delays) and isinstance(error, self.on):
            return self.delays[attempt]
        return None


NO_RETRY = Retry()


@dataclass(frozen=True, slots=True)
class Declaration:
    """One task. Times are `timedelta`; `freshness` is the age of the last success that raises an alarm."""

    name: str
    function: Callable[..., Counts]
    schedule: Schedule | None
    lease: timedelta
    soft_limit: timedelta
    hard_limit: timedelta
    misfire: Misfire
    retry: Retry = NO_RETRY
    freshness: timedelta | None = None
    description: str = field(default="")

    def check(self) -> None:
        """Raises DeclarationError."""
        if not self.soft_limit < self.hard_limit < self.lease:
            raise DeclarationError(
                f"{self.name}: soft limit < hard limit < lease, so no run outlives its lease"
            )
        if self.lease > LONGEST_RUN:
            raise DeclarationError(f"{self.name}: a lease of at most {LONGEST_RUN}")
        if self.schedule is not None and self.freshness is None:
            raise DeclarationError(f"{self.name}: a scheduled task has a freshness")

    def lease_key(self, arguments: list[Any]) -> str:
        """The task, and the arguments when it has any: each set of arguments has a lease of its own."""
        if not arguments:
            return self.name
        return f"{self.name}:{hashlib.sha256(canonical.dumps(arguments)).hexdigest()[:32]}"


_declared: dict[str, Declaration] = {}


def add(declaration: Declaration) -> None:
    declaration.check()
    known = _declared.get(declaration.name)
    if known is not None and known.function.__qualname__ != declaration.function.__qualname__:
        raise DeclarationError(f"{declaration.name} is declared twice")
    _declared[declaration.name] = declaration


@cache
def _import_tasks() -> None:
    """Have every app declare its tasks, also in processes that run none: pages and health speak of all."""
    autodiscover_modules("tasks")


def declared() -> Iterator[Declaration]:
    """All tasks, by name."""
    _import_tasks()
    return iter(sorted(_declared.values(), key=lambda declaration: declaration.name))


def find(name: str) -> Declaration | None:
    _import_tasks()
    return _declared.get(name)


def remove(name: str) -> None:
    """For tests that declare tasks of their own."""
    _declared.pop(name, None)


def wire_arguments(arguments: tuple[Any, ...] | list[Any]) -> list[Any]:
    """Arguments as they travel: ids as text of 36 characters, numbers, booleans, null, lists of those.

    Raises TextInArguments for anything else, without showing it.
    """
    return [_wire(argument) for argument in arguments]


def _wire(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, str):
        try:
            return str(UUID(value))
        except ValueError:
            raise TextInArguments("arguments of a task are ids and numbers") from None
    if isinstance(value, (list, tuple)):
        return [_wire(part) for part in value]
    raise TextInArguments("arguments of a task are ids and numbers")


def from_wire(arguments: list[Any]) -> list[Any]:
    """The arguments for the function: ids are UUIDs again."""
    return [
        from_wire(value) if isinstance(value, list) else UUID(value) if isinstance(value, str) else value
        for value in arguments
    ]
