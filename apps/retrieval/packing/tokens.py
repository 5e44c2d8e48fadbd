"""Counting tokens: a built-in estimate that needs nothing, and the port of a real tokenizer."""

import re
from typing import Protocol

ESTIMATE = "estimate-1"
"""Name and version of the built-in estimate; another rule is another version."""


class Tokenizer(Protocol):
    """Counts tokens. `name` says which and in which version; it is kept in receipts."""

    @property
    def name(self) -> str: ...

    def count(self, text: str) -> int:
        """Tokens of the text, none of it taken for a special token."""


# Each match is a token: five letters of a word, two digits, a run of up to eight blanks, a line break, a sign; of other
# scripts two characters below U+0800, one above. A single blank belongs to the word after it.
_TOKENS = re.compile(
    r"[A-Za-z]{1,5}|[0-9]{1,2}|[ \t]{2,8}|[\x00-\x08\x0a-\x1f\x7f]|[!-/:-@\[-`{-~]"
    r"|[\u0080-\u07ff]{1,2}|[\u0800-\uffff]"
)
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_OF_AN_ASTRAL = 3


class _Estimate:
    """Near what common byte-pair vocabularies need, rather above than below; a sum over lines."""

    name = ESTIMATE

    def count(self, text: str) -> int:
        counted = len(_TOKENS.findall(text))
        return counted if text.isascii() else counted + _OF_AN_ASTRAL * len(_ASTRAL.findall(text))


estimate: Tokenizer = _Estimate()
