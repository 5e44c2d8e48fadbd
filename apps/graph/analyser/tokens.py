"""From a text to raw forms: code tokens, bigrams and words, before any stemming. Pure and deterministic."""

import unicodedata
from collections import Counter
from functools import lru_cache
from typing import NamedTuple

from .scripts import ASCII_RUN, KATAKANA_RUN, RUN, SEPARATOR, UNSPACED

MAX_WORD = 64
MAX_CODE = 120
"""Characters of a term that are kept; what is longer is cut alike in documents and queries."""


class Forms(NamedTuple):
    """What one run of a text stands for. `code` and `bigrams` are final terms, `words` need stemming."""

    code: tuple[str, ...]
    bigrams: tuple[str, ...]
    words: tuple[str, ...]


def count_runs(text: str) -> Counter[str]:
    """How often each run occurs, in the order of first appearance."""
    if text.isascii():
        return Counter(ASCII_RUN.findall(text))
    return Counter(RUN.findall(unicodedata.normalize("NFKC", text)))


@lru_cache(maxsize=1 << 14)
def forms_of(run: str) -> Forms:
    """The forms of one run of `count_runs`."""
    run = run.strip("_")
    if run.isascii():
        return _spaced(run)
    code: list[str] = []
    bigrams: list[str] = []
    words: list[str] = []
    at = 0
    for found in UNSPACED.finditer(run):
        _extend(code, words, run[at : found.start()])
        bigrams += _bigrams(found.group())
        at = found.end()
    _extend(code, words, run[at:])
    return Forms(tuple(code), tuple(bigrams), tuple(words))


def _extend(code: list[str], words: list[str], piece: str) -> None:
    found = _spaced(piece.strip("_./:#@$-"))
    code += found.code
    words += found.words


def _bigrams(run: str) -> list[str]:
    if len(run) == 1:
        return [f"j:{run}"]
    terms = [f"j:{run[i : i + 2]}" for i in range(len(run) - 1)]
    terms += [
        f"j:{found.group()[:MAX_WORD]}" for found in KATAKANA_RUN.finditer(run) if len(found.group()) > 2
    ]
    return terms


def _spaced(run: str) -> Forms:
    """Forms of a run in scripts that separate words."""
    parts = [part for piece in SEPARATOR.split(run) if piece for part in _humps(piece)]
    words = tuple(word[:MAX_WORD] for word in (part.lower() for part in parts) if len(word) >= 2)
    is_code = len(parts) > 1
    return Forms((f"c:{run.lower()[:MAX_CODE]}",) if is_code else (), (), words)


def _humps(piece: str) -> list[str]:
    """Parts of `getUserName`, `HTMLParser`, `utf8`: cut at case humps and letter–digit borders."""
    cuts = [0]
    for i in range(1, len(piece)):
        before, here = piece[i - 1], piece[i]
        hump = before.islower() and here.isupper()
        acronym = before.isupper() and here.isupper() and i + 1 < len(piece) and piece[i + 1].islower()
        border = before.isdigit() != here.isdigit() and not unicodedata.combining(here)
        if hump or acronym or border:
            cuts.append(i)
    return [piece[start:end] for start, end in zip(cuts, [*cuts[1:], len(piece)], strict=True)]
