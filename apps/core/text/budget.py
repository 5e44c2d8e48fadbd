"""The byte budget: an answer is never larger than promised, and never silently shorter.

All rows, their order and their metadata stay; only texts are cut, all at one cap, which halves until the
rendered body fits. A cut text ends in an ellipsis and its row says `content_truncated`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.core.problems import InvalidRequest, ResponseTooLarge

from .unicode import Utf16Text, excerpt, utf16_len

SOURCES_BUDGET = 32_000
"""Bytes of an answer of sources search and of a page of a document."""
SEARCH_BUDGET = 262_144
"""Bytes of an answer of `/v1/search`."""
RESERVED = 512
"""Bytes kept free for what is added after the cut: observation fields, warnings."""
CAPS = (2000, 1000, 500, 250, 125, 62, 31, 15, 7, 3, 1, 0)
"""UTF-16 units at which texts are cut; each is half of the one before, rounded down."""

Render = Callable[[Any], bytes]


@dataclass(frozen=True)
class Fitted:
    """An answer within its budget. `body` is what was counted; `cap` is None where no text was cut."""

    document: dict[str, Any]
    body: bytes
    cap: int | None


def render_json(document: Any) -> bytes:
    """The bytes of a JSON answer: UTF-8, compact, line separators escaped for script contexts."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").encode()


def check_request_id(request_id: str, *, budget: int = SOURCES_BUDGET) -> None:
    """Refuses a request id that alone would use up the budget; the answer then carries null in its place."""
    if len(render_json({"request_id": request_id})) > budget - RESERVED:
        raise InvalidRequest(
            "The request id is larger than an answer may be", pointer="/request_id", request_id=None
        )


def fit_budget(
    document: Mapping[str, Any],
    *,
    budget: int,
    texts: Sequence[tuple[str, str]] = (("results", "content"),),
    reserve: int = 0,
    whole_first: bool = False,
    render: Render = render_json,
) -> Fitted:
    """The document with its texts cut as far as the budget asks.

    `texts` names where they are: pairs of a member holding a list of rows and the rows' text field; absent
    members, null texts and rows without the field are passed over. `reserve` bytes stay free. With
    `whole_first` texts are given uncut if that fits (a fetch); else they are cut at 2,000 units from the
    start. `render` makes the complete envelope that is counted. Raises `ResponseTooLarge` when even empty
    texts do not fit; nothing partial is answered.
    """
    longest = max(_lengths(document, texts), default=0)
    caps: tuple[int | None, ...] = (None, *CAPS) if whole_first or longest <= CAPS[0] else CAPS
    for cap in caps:
        if cap is not None and cap >= longest:
            continue  # cuts nothing, so it is the body that did not fit
        candidate = dict(document) if cap is None else _cut(document, texts, cap)
        body = render(candidate)
        if len(body) <= budget - reserve:
            return Fitted(candidate, body, cap)
    raise ResponseTooLarge("The answer does not fit its budget; ask for fewer or smaller parts")


def largest_end(text: Utf16Text, start: int, fits: Callable[[int], bool]) -> int:
    """The largest UTF-16 offset up to which a page from `start` fits, never inside a surrogate pair.

    `fits` answers for an end offset and must not turn true again after it was false. Returns `start` when
    nothing fits.
    """
    low, high = start, text.length
    while low < high:
        middle = text.floor((low + high + 1) // 2)
        if middle <= low:  # the pair right after `low` is the only step left
            middle = min(low + 2, high)
        if fits(middle):
            low = middle
        else:
            high = text.floor(middle - 1)
    return low


def _rows(document: Mapping[str, Any], member: str) -> Sequence[Any]:
    rows = document.get(member)
    return rows if isinstance(rows, list | tuple) else ()


def _lengths(document: Mapping[str, Any], texts: Sequence[tuple[str, str]]) -> list[int]:
    return [
        utf16_len(row[field])
        for member, field in texts
        for row in _rows(document, member)
        if isinstance(row.get(field), str)
    ]


def _cut(document: Mapping[str, Any], texts: Sequence[tuple[str, str]], cap: int) -> dict[str, Any]:
    cut = dict(document)
    for member, field in texts:
        if rows := _rows(cut, member):
            cut[member] = [_cut_row(row, field, cap) for row in rows]
    return cut


def _cut_row(row: Mapping[str, Any], field: str, cap: int) -> Mapping[str, Any]:
    text = row.get(field)
    if not isinstance(text, str) or utf16_len(text) <= cap:
        return row
    return {**row, field: excerpt(text, cap), "content_truncated": True}
