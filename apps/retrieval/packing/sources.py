"""What packing knows of a source."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from .options import Tier


@dataclass(frozen=True, slots=True)
class Source:
    """A row that may enter a context. Title, text and place are a memory's words, whatever they hold.

    place: where it comes from, in words. at: when it happened, else when it was last changed.
    channels: how many found it. standing: a standing instruction of its owner.
    """

    node_id: UUID
    title: str
    text: str
    place: str
    kind: str
    type: str
    epistemic: str
    score: float
    at: datetime
    channels: int = 0
    pinned: bool = False
    standing: bool = False

    @property
    def tier(self) -> Tier:
        if self.standing:
            return "instructions"
        if self.pinned:
            return "pinned"
        return "multi_path" if self.channels > 1 else "rest"

    @property
    def has_words(self) -> bool:
        return bool(self.title.strip() or self.text.strip())


def place_of(repo: str | None, identity: Any, path: str | None, part: int | None) -> str:
    """Where a passage comes from: repository, path or identity, and which part of it. Empty for a claim."""
    if repo is None:
        return ""
    named = f"#{identity}" if isinstance(identity, int) else path or _text(identity)
    return f"{repo} {named}" + (f" part {part + 1}" if part else "")


def _text(identity: Any) -> str:
    return "@".join(map(str, reversed(identity))) if isinstance(identity, list) else str(identity)
