"""Ports of retrieval: what reads the wording of a query, and what ranks the first rows anew.

Both are asked by name, and none is installed by default but the analysis `wording`. An installed package offers one
under the entry points `memory_platform.query_analyses` or `memory_platform.rerankers`; code of the platform registers
it at start-up. One that fails changes nothing and is reported: an answer never depends on it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from importlib.metadata import entry_points
from typing import Generic, Protocol, TypeVar

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Reading:
    """What an analysis makes of the wording of a query.

    Attributes:
        current: whether it asks for the present state of something.
        window: the time of the episode that it speaks of, half-open; aware.
    """

    current: bool = False
    window: tuple[datetime, datetime] | None = None


class QueryAnalysis(Protocol):
    """Reads wording. Another `version` for another reading of the same words: receipts name it."""

    version: str

    def read(self, query: str, *, at: datetime) -> Reading:
        """The reading of a query that was asked `at` this time. Pure: the same for the same arguments."""


class Reranker(Protocol):
    """Scores texts for a query. A search asks it between its sessions."""

    version: str

    def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """A score in [0, 1] for each text, in their order."""


class Registry(Generic[P]):
    """Extensions of one port by name; each is made once a process, when it is first asked for."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._factories: dict[str, Callable[[], P]] = {}
        self._made: dict[str, P] = {}

    @cached_property
    def _offered(self) -> dict[str, Callable[[], P]]:
        return {each.name: _loader(each.load) for each in entry_points(group=self._group)}

    def register(self, name: str, factory: Callable[[], P]) -> None:
        self._factories[name] = factory
        self._made.pop(name, None)

    def unregister(self, name: str) -> None:
        self._factories.pop(name, None)
        self._made.pop(name, None)

    def names(self) -> tuple[str, ...]:
        return tuple(sorted({*self._factories, *self._offered}))

    def get(self, name: str) -> P | None:
        """The extension of that name, or None where none is installed."""
        if name not in self._made:
            factory = self._factories.get(name) or self._offered.get(name)
            if factory is None:
                return None
            self._made[name] = factory()
        return self._made[name]


def _loader(load: Callable[[], Callable[[], P]]) -> Callable[[], P]:
    return lambda: load()()


analyses: Registry[QueryAnalysis] = Registry("memory_platform.query_analyses")
rerankers: Registry[Reranker] = Registry("memory_platform.rerankers")
