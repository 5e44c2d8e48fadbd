"""Meaning colours as sign and word, and closed or long text."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from .base import Part

Tone = Literal["ok", "warn", "bad", "run", "held", "plain"]
SIGNS: dict[Tone, str] = {"ok": "✓", "warn": "!", "bad": "✕", "run": "…", "held": "", "plain": "–"}
TEXT_LINES = 12
TEXT_LINE = 80


@dataclass(frozen=True, slots=True)
class Mark(Part):
    """A state in words with its sign. `bare` leaves out the tint, for rows where it is the normal case."""

    tone: Tone
    text: str
    title: str = ""
    sign: str | None = None
    bare: bool = False
    template_name: ClassVar[str] = "core/parts/mark.html"

    @property
    def shown_sign(self) -> str:
        return SIGNS[self.tone] if self.sign is None else self.sign


@dataclass(frozen=True, slots=True)
class Lock(Part):
    """Text that is closed: what it is, and where it can be revealed when the viewer may."""

    text: str
    reveal_url: str = ""
    target_id: str = ""
    template_name: ClassVar[str] = "core/parts/lock.html"


@dataclass(frozen=True, slots=True)
class LongText(Part):
    """Text with its white space; 12 lines first, then all on demand."""

    text: str
    template_name: ClassVar[str] = "core/parts/long_text.html"

    @property
    def head(self) -> str:
        lines = self.text.splitlines(keepends=True)
        return "".join(lines[:TEXT_LINES])[: TEXT_LINES * TEXT_LINE]

    @property
    def cut(self) -> bool:
        return len(self.head) < len(self.text)


@dataclass(frozen=True, slots=True)
class Secret(Part):
    """A secret that is shown once. Leaving the page before "I have stored it" asks."""

    value: str
    name: str
    template_name: ClassVar[str] = "core/parts/secret.html"
