"""Parts of the pages of learning: the pointer as a line, verdicts in a row, and what is loaded after the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from apps.core.ui import Part
from apps.core.ui.marks import Tone


@dataclass(frozen=True, slots=True)
class Station:
    """Where a pointer has been: `at` is None for base before any command."""

    name: str
    words: str = ""
    at: datetime | None = None
    by: str = ""
    tone: Tone = "plain"
    href: str = ""


@dataclass(frozen=True)
class PointerLine(Part):
    """A pointer's way, oldest first, as a line; `now` says where it stands, `action` is the button at its end."""

    stations: Sequence[Station]
    now: Any
    action: Any = ""
    template_name: ClassVar[str] = "learning/parts/pointer_line.html"


@dataclass(frozen=True)
class Verdicts(Part):
    """Named verdicts in a row: what must hold, each with its sign and word."""

    items: Sequence[tuple[str, Any]]
    template_name: ClassVar[str] = "learning/parts/verdicts.html"


@dataclass(frozen=True)
class Slow(Part):
    """A box that our script fills after the page; without it a plain link. `small`: it takes one line."""

    url: str
    name: str
    small: bool = False
    template_name: ClassVar[str] = "learning/parts/slow.html"


@dataclass(frozen=True)
class Watch(Part):
    """Asks now and then whether the page still shows what is; says nothing while it does.

    `stale` is what has happened since; the page's actions are then closed until it is shown anew.
    """

    url: str
    stale: Any = ""
    again: str = ""
    template_name: ClassVar[str] = "learning/parts/watch.html"


@dataclass(frozen=True)
class Orders(Part):
    """Recent answers, each in its order now and then, rows that move marked with how far."""

    answers: Sequence[Any]
    template_name: ClassVar[str] = "learning/parts/orders.html"
