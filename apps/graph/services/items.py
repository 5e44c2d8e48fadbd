"""One passage as it arrives, and what became of it."""

import json
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, get_args
from uuid import UUID

from apps.core import clock
from apps.graph.analyser import Analysed
from apps.graph.digests import passage_digest, passage_text

TEXT_MAX = 10_000
TITLE_MAX = 512
INDEX_TIMED = frozenset({"doc", "wiki_doc", "document"})
"""Types whose version is the time of indexing; the others carry the origin's `updated_at` as it was given."""

SourceType = Literal[
    "issue",
    "pull_request",
    "release",
    "doc",
    "wiki_doc",
    "diff",
    "issue_comment",
    "pr_review",
    "pr_review_comment",
    "document",
]
"""What a passage may be; the one list, in the order in which a scan names its surfaces."""
TYPES: tuple[str, ...] = get_args(SourceType)
THREADED = frozenset({"issue", "pull_request"})


class ItemRefused(Exception):
    """This item cannot be stored; `code` is stable."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class PassageItem:
    """A passage to store. What identifies it is scope, repo, type, identity and part.

    Attributes:
        identity: a number, a text of 1..512 characters, or `[commit, path]` for a diff.
        updated_at: the origin's own string, for types that are not versioned by their indexing.
        event_at: when what it tells happened; aware.
        language: a text search configuration; guessed when absent.
    """

    identity: int | str | list[str]
    text: str
    title: str = ""
    type: str = "document"
    repo: str = "conn:api"
    updated_at: str | None = None
    part: int = 0
    path: str | None = None
    number: int | None = None
    url: str | None = None
    state: str | None = None
    labels: tuple[str, ...] = ()
    milestone: str | None = None
    assignee: str | None = None
    session: str | None = None
    position: int | None = None
    event_at: datetime | None = None
    language: str | None = None
    scope: str = "default"
    project: str | None = None

    def key(self) -> tuple[str, str, str, str, int]:
        return (self.scope, self.repo, self.type, json.dumps(self.identity), self.part)


Result = Literal["created", "updated", "unchanged", "error"]


@dataclass(frozen=True, slots=True)
class PassageResult:
    """What became of an item; provenance is what source identity is made of."""

    index: int
    result: Result
    node_id: UUID | None = None
    repo: str | None = None
    type: str | None = None
    identity: Any = None
    version: str | None = None
    error: str | None = None


@dataclass(slots=True)
class Prepared:
    """An item that passed its checks, normalised."""

    index: int
    item: PassageItem
    title: str
    body: str
    text: str
    digest: str
    version: str
    updated_at: datetime
    slug: str | None
    number: int | None
    analysed: Analysed | None = None


def prepare(index: int, item: PassageItem) -> Prepared:
    """Check and normalise one item. Raises ItemRefused."""
    title, body = _clean(" ".join(item.title.split())), _clean(item.text)
    text = passage_text(title, body)
    if len(text) > TEXT_MAX:
        raise ItemRefused("text_too_long")
    if len(title) > TITLE_MAX:
        raise ItemRefused("title_too_long")
    if item.type not in TYPES:
        raise ItemRefused("unknown_type")
    _check_identity(item.identity)
    now = clock.now()
    indexed = item.type in INDEX_TIMED
    return Prepared(
        index=index,
        item=item,
        title=title,
        body=body,
        text=text,
        digest=passage_digest(
            repo=item.repo, type=item.type, identity=item.identity, part=item.part, text=text
        ),
        version=clock.iso(now) if indexed else (item.updated_at or ""),
        updated_at=_moment(item.updated_at) or now,
        slug=_slug(item) if item.type == "wiki_doc" else None,
        number=_number(item),
    )


def _clean(text: str) -> str:
    if "\x00" in text:
        raise ItemRefused("text_not_storable")
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ItemRefused("text_not_storable") from error
    return unicodedata.normalize("NFC", text)


def _check_identity(identity: Any) -> None:
    if isinstance(identity, bool) or not isinstance(identity, int | str | list):
        raise ItemRefused("bad_identity")
    texts = [identity] if isinstance(identity, str) else identity if isinstance(identity, list) else []
    if isinstance(identity, list) and len(identity) != 2:
        raise ItemRefused("bad_identity")
    for part in texts:
        if not isinstance(part, str) or not 1 <= len(part) <= 512 or _clean(part) != part:
            raise ItemRefused("bad_identity")


def _moment(text: str | None) -> datetime | None:
    """The time that an origin's string names, if it is an aware ISO time."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo else None


def _slug(item: PassageItem) -> str | None:
    """The last segment of a wiki page's path, without its extension."""
    path = item.path or (item.identity if isinstance(item.identity, str) else "")
    name = path.rstrip("/").rsplit("/", 1)[-1]
    stem, dot, extension = name.rpartition(".")
    return (stem if dot and stem and len(extension) <= 10 else name) or None


def _number(item: PassageItem) -> int | None:
    if item.number is not None:
        return item.number
    return item.identity if item.type in THREADED and isinstance(item.identity, int) else None
