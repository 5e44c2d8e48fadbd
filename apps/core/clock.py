"""The one clock of the application. Code asks here, tests freeze it; expiry asks the database's clock."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta

_frozen: "ContextVar[Frozen | None]" = ContextVar("frozen_clock", default=None)


class Frozen:
    """A clock that stands still until it is moved; it may also be moved back."""

    def __init__(self, at: datetime) -> None:
        self.at = at.astimezone(UTC)

    def advance(self, by: timedelta) -> None:
        self.at += by


def now() -> datetime:
    """The present time, aware, in UTC."""
    frozen = _frozen.get()
    return frozen.at if frozen else datetime.now(UTC)


def iso(at: datetime) -> str:
    """RFC 3339 in UTC with six fractional digits and `Z`, the form of every time in the API."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@contextmanager
def frozen(at: datetime) -> Iterator[Frozen]:
    clock = Frozen(at)
    token = _frozen.set(clock)
    try:
        yield clock
    finally:
        _frozen.reset(token)
