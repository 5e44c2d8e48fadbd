"""What a text may hold, and positions in it counted in UTF-16 code units.

Offsets of the API and of stored spans are UTF-16 units, as in the reference formats; Python counts code
points. All work with offsets goes through `Utf16Text`, or through `utf16_len` and `utf16_cut`.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right

ELLIPSIS = "…"

# ECMAScript's WhiteSpace and LineTerminator: 25 characters. `str.strip()` takes another set.
TRIMMED = (
    "\u0009\u000a\u000b\u000c\u000d\u0020\u00a0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)

_SURROGATE = re.compile("[\ud800-\udfff]")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
# Default_Ignorable_Code_Point of the Unicode Character Database (DerivedCoreProperties.txt, 14.0).
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)


class BadText(ValueError):
    """A text that no row and no document may hold. The message says why and never what."""


def text_fault(text: str) -> str | None:
    """Why the platform cannot hold this text, or None. PostgreSQL has no NUL, UTF-8 no lone surrogate."""
    if "\x00" in text:
        return "The text holds a NUL character"
    if _SURROGATE.search(text):
        return "The text holds a lone surrogate"
    return None


def check_text(text: str) -> str:
    """The text itself; raises `BadText` for NUL and lone surrogates."""
    if fault := text_fault(text):
        raise BadText(fault)
    return text


def nfc(text: str) -> str:
    """Unicode normalisation form C."""
    return unicodedata.normalize("NFC", text)


def nfkc(text: str) -> str:
    """Unicode normalisation form KC: full-width, ligature and other compatibility forms unfolded."""
    return unicodedata.normalize("NFKC", text)


def trim(text: str) -> str:
    """Without the 25 characters of `TRIMMED` at both ends."""
    return text.strip(TRIMMED)


def without_ignorable(text: str) -> str:
    """Without default-ignorable characters: zero-width, soft hyphen, joiners, variation selectors, tags."""
    return _IGNORABLE.sub("", text)


def utf16_len(text: str) -> int:
    """Length in UTF-16 code units."""
    return len(text) if text.isascii() else len(text) + len(_ASTRAL.findall(text))


def utf16_cut(text: str, units: int) -> str:
    """The longest beginning of at most `units` UTF-16 units; a pair that would be split stays out."""
    if units <= 0:
        return ""
    head = text[:units]
    if head.isascii() or utf16_len(head) <= units:
        return head
    return head[: Utf16Text(head).index_before(units)]


def excerpt(text: str, units: int) -> str:
    """The text, if it is no longer than `units`; else its beginning of that length and an ellipsis."""
    return text if utf16_len(text) <= units else utf16_cut(text, units) + ELLIPSIS


class Utf16Text:
    """A text with positions in UTF-16 units: length, boundaries and slices by bisection.

    Keeps the positions of the characters above U+FFFF, so a text without them costs nothing.
    """

    __slots__ = ("_astral", "_offsets", "length", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._astral = [] if text.isascii() else [match.start() for match in _ASTRAL.finditer(text)]
        # The offset of the n-th astral character: its index and one more for each before it.
        self._offsets = [index + before for before, index in enumerate(self._astral)]
        self.length = len(text) + len(self._astral)

    def offset(self, index: int) -> int:
        """UTF-16 offset of a code point index."""
        if not 0 <= index <= len(self.text):
            raise IndexError("index outside the text")
        return index + bisect_left(self._astral, index)

    def is_boundary(self, offset: int) -> bool:
        """Whether the offset lies inside 0..length and not inside a surrogate pair."""
        if not 0 <= offset <= self.length:
            return False
        at = bisect_left(self._offsets, offset - 1)
        return at == len(self._offsets) or self._offsets[at] != offset - 1

    def index(self, offset: int) -> int:
        """Code point index of an offset; `IndexError` outside of the text or inside a pair."""
        if not self.is_boundary(offset):
            raise IndexError("offset outside the text or inside a surrogate pair")
        return self.index_before(offset)

    def index_before(self, offset: int) -> int:
        """Code point index of the last boundary at or before an offset, clamped to the text."""
        offset = max(0, min(offset, self.length))
        pairs = bisect_right(self._offsets, offset - 1)
        if pairs and self._offsets[pairs - 1] == offset - 1:
            return self._astral[pairs - 1]
        return offset - pairs

    def floor(self, offset: int) -> int:
        """The last boundary at or before an offset."""
        return self.offset(self.index_before(offset))

    def slice(self, start: int, end: int) -> str:
        """Text of the half-open span; `IndexError` for ends that are no boundaries or out of order."""
        if start > end:
            raise IndexError("span ends before it starts")
        return self.text[self.index(start) : self.index(end)]
