"""The tokenizer of this installation: the built-in estimate, or the one that an operator installed.

Nothing is ever fetched: a tokenizer is a file, or a package with its files in its cache.
"""

import hashlib
import os
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from django.conf import settings

from apps.core.problems import Unavailable

from .tokens import Tokenizer, estimate

TIKTOKEN, CACHE = "tiktoken:", "TIKTOKEN_CACHE_DIR"


class TokenizerMissing(RuntimeError):
    """The tokenizer that the settings name cannot be loaded. The message says why, for the operator."""


class Encoding(Protocol):
    """What a `tiktoken.Encoding` offers, and whatever is made like it."""

    @property
    def name(self) -> str: ...

    def encode_ordinary(self, text: str) -> list[int]: ...


class EncodingTokenizer:
    """Counts with an encoding of tiktoken's interface."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self.name = f"{TIKTOKEN}{encoding.name}"

    def count(self, text: str) -> int:
        return len(self._encoding.encode_ordinary(text))


class FileTokenizer:
    """Counts with a `tokenizer.json`; its name holds the hash of the file."""

    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer as Loaded

        content = path.read_bytes()
        self._loaded: Any = Loaded.from_buffer(content)
        self._loaded.no_truncation()
        self._loaded.no_padding()
        self.name = f"{path.stem[:64]}@{hashlib.sha256(content).hexdigest()[:12]}"

    def count(self, text: str) -> int:
        return len(self._loaded.encode(text, add_special_tokens=False).ids)


def tokenizer() -> Tokenizer:
    """The tokenizer in force. Raises Unavailable where the one of the settings cannot be loaded."""
    try:
        return load(settings.TOKENIZER)
    except TokenizerMissing:
        raise Unavailable("The tokenizer could not be loaded") from None


@lru_cache(maxsize=4)
def load(named: str) -> Tokenizer:
    """The tokenizer of this name: empty is the estimate, `tiktoken:…` an encoding of that package, else a file.

    Raises TokenizerMissing.
    """
    if not named:
        return estimate
    try:
        if named.startswith(TIKTOKEN):
            return EncodingTokenizer(_encoding(named.removeprefix(TIKTOKEN)))
        return FileTokenizer(Path(named))
    except TokenizerMissing:
        raise
    except Exception as error:
        # Whatever a file or a package does when it cannot be read.
        raise TokenizerMissing(f"{named} cannot be loaded: {type(error).__name__}") from error


def _encoding(name: str) -> Encoding:
    cache = os.environ.get(CACHE, "")
    if not cache or not Path(cache).is_dir() or not any(Path(cache).iterdir()):
        # Without its cache the package would ask the network.
        raise TokenizerMissing(f"{CACHE} must name a folder that holds the files of the encoding")
    try:
        import tiktoken  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise TokenizerMissing("the package tiktoken is not installed") from None
    encoding: Encoding = tiktoken.get_encoding(name)
    return encoding
