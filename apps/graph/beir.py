"""Reads collections in the BEIR layout as passages: `corpus.jsonl`, one document a line."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from apps.graph.digests import passage_text
from apps.graph.services import PassageItem
from apps.graph.services.items import TEXT_MAX, TITLE_MAX

PART = 8_000
"""Characters of a part, at most, of a document that is cut."""


class CorpusError(ValueError):
    """A line of the corpus that cannot be read; the message names the line, never its text."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What of a document's metadata means what; each name is the part after `metadata.`."""

    repo: str
    scope: str = "default"
    split_by: str | None = None
    session_by: str | None = None
    event_time: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """The parts of one document, and the value by which it was split off."""

    owner: str | None
    parts: tuple[PassageItem, ...]


def read_corpus(path: Path, layout: Layout) -> Iterator[Document]:
    """The documents of a corpus in their order, streaming. Raises CorpusError."""
    positions: dict[tuple[str | None, str], int] = {}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                yield _document(json.loads(line), layout, positions)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise CorpusError(
                    f"line {number} of {path.name} is not a document ({type(error).__name__})"
                ) from error


def _document(
    given: dict[str, Any], layout: Layout, positions: dict[tuple[str | None, str], int]
) -> Document:
    metadata = given.get("metadata") or {}
    owner = _value(metadata, layout.split_by)
    session = _value(metadata, layout.session_by)
    item = PassageItem(
        identity=str(given["_id"]),
        title=(given.get("title") or "")[:TITLE_MAX],
        text=given.get("text") or "",
        repo=layout.repo,
        scope=layout.scope,
        session=session,
        event_at=_moment(_value(metadata, layout.event_time)),
    )
    parts = cut(item)
    if session is not None:
        first = positions.get((owner, session), 0)
        parts = [replace(part, position=first + number) for number, part in enumerate(parts)]
        positions[owner, session] = first + len(parts)
    return Document(owner, tuple(parts))


def _value(metadata: dict[str, Any], name: str | None) -> str | None:
    value = metadata.get(name) if name else None
    return None if value is None else str(value)


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError("a time without a zone")
    return found


def cut(item: PassageItem) -> list[PassageItem]:
    """The item, or its parts at white space where text and title are too long for one passage."""
    if len(passage_text(item.title, item.text)) <= TEXT_MAX:
        return [item]
    room = min(PART, TEXT_MAX - len(item.title) - 2)
    pieces, at = [], 0
    while at < len(item.text):
        end = min(at + room, len(item.text))
        if end < len(item.text):
            space = max(item.text.rfind(blank, at + 1, end) for blank in (" ", "\n", "\t"))
            end = space + 1 if space > at else end
        pieces.append(item.text[at:end])
        at = end
    return [replace(item, text=piece, part=number) for number, piece in enumerate(pieces)]
