"""Which characters belong to which kind of writing; only what the analyser has to tell apart."""

import re
import sys
import unicodedata

# Blocks of scripts that are written without spaces, as of Unicode 15.
_EAST_ASIAN = (
    "\u3005-\u3007\u3021-\u3029\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
)
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
_SOUTH_EAST_ASIAN = (
    "\u0e00-\u0e7f",
    "\u0e80-\u0eff",
    "\u1780-\u17ff",
    "\u1000-\u109f\ua9e0-\ua9fe\uaa60-\uaa7f",
)

UNSPACED = re.compile("|".join(f"[{block}]+" for block in (_EAST_ASIAN, *_SOUTH_EAST_ASIAN)))
"""A run of one script without spaces; the East Asian ones mix freely in a run."""

KATAKANA_RUN = re.compile(f"[{_KATAKANA}]{{2,}}")


def _mark_ranges() -> str:
    """Character class of all combining marks, which `\\w` leaves out and Indic words need."""
    ranges: list[list[int]] = []
    for point in range(0x0300, min(sys.maxunicode, 0x20000)):
        if unicodedata.category(chr(point)) not in {"Mn", "Mc"}:
            continue
        if ranges and ranges[-1][1] == point - 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


_WORD = rf"[\w{_mark_ranges()}]"
_JOINED = r"{word}+(?:(?:://|::|[./:#@$\-]){word}+)*"
RUN = re.compile(_JOINED.format(word=_WORD))
"""The longest stretch that may be one token: words, joined by the separators of identifiers and paths."""

ASCII_RUN = re.compile(_JOINED.format(word=r"\w"), re.ASCII)
"""The same for ASCII text, three times as fast."""

SEPARATOR = re.compile(r"[_./:#@$\-]+")


def fold_marks(word: str) -> str:
    """The word without diacritics: `zürich` → `zurich`. Vowel signs, which are letters in effect, stay."""
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFKD", word)
    kept = "".join(c for c in decomposed if unicodedata.combining(c) < 10)
    return unicodedata.normalize("NFC", kept)
