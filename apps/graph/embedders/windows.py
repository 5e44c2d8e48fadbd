"""Long texts: windows that fit a model, and one vector out of theirs."""

import re
from collections.abc import Callable, Sequence

import numpy as np

from .base import MAX_WINDOWS, WINDOW_TOKENS, Vectors, unit

_SPLIT = re.compile(r"\S+\s*")


def windows(
    text: str,
    count_tokens: Callable[[str], int],
    *,
    size: int = WINDOW_TOKENS,
    at_most: int = MAX_WINDOWS,
) -> list[str]:
    """Cuts a text at white space into pieces of at most `size` tokens, the first `at_most` of them.

    A piece without white space that is too large (scripts without spaces, long identifiers) is cut by
    halves. `count_tokens` counts as the model does, special tokens included; it is asked O(log n) times a
    window.
    """
    if count_tokens(text) <= size:
        return [text]
    pieces = _SPLIT.findall(text)
    found: list[str] = []
    while pieces and len(found) < at_most:
        fits = _longest_prefix(pieces, count_tokens, size)
        if fits == 0:
            head = pieces[0]
            pieces[:1] = [head[: len(head) // 2], head[len(head) // 2 :]]
            continue
        found.append("".join(pieces[:fits]))
        pieces = pieces[fits:]
    return found


def _longest_prefix(pieces: Sequence[str], count_tokens: Callable[[str], int], size: int) -> int:
    low, high = 0, min(len(pieces), size)  # a piece has at least one token
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens("".join(pieces[:middle])) <= size:
            low = middle
        else:
            high = middle - 1
    return low


def embed_windowed(
    texts: Sequence[str],
    count_tokens: Callable[[str], int],
    embed: Callable[[list[str]], Vectors],
    *,
    batch: int = 32,
) -> Vectors:
    """The unit mean of the unit vectors of each text's windows, shape (len(texts), dims)."""
    parts = [windows(text, count_tokens) for text in texts]
    flat = [window for windows_of_text in parts for window in windows_of_text]
    vectors = np.vstack([embed(flat[start : start + batch]) for start in range(0, len(flat), batch)])
    if len(flat) == len(texts):
        return unit(vectors)
    ends = np.cumsum([len(windows_of_text) for windows_of_text in parts])
    return unit(np.vstack([rows.mean(axis=0) for rows in np.split(unit(vectors), ends[:-1])]))
