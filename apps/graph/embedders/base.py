"""The port: what every embedder offers, and what its vectors look like."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

MAX_CHARACTERS = 8_000
"""Of a node's text, label and entity names included, that an embedder is given (UTF-8 characters)."""

WINDOW_TOKENS = 480
MAX_WINDOWS = 8


class EmbedderFailed(Exception):
    """The embedder gave no vector. `code` is stable and carries no text of the caller or the driver."""

    def __init__(self, code: str, *, retryable: bool = True) -> None:
        super().__init__(code)
        self.code = code
        self.retryable = retryable


class Embedder(ABC):
    """Turns texts into unit vectors of one space. Instances are shared by the threads of a process."""

    name: ClassVar[str]
    local: ClassVar[bool]
    """True when an embedding costs no network and no more than some milliseconds."""

    model_id: str
    """Names the vector space: equal ids mean comparable vectors."""
    dims: int

    @abstractmethod
    def embed_query(self, text: str) -> Vectors:
        """The unit vector of a question, shape (dims,). Raises `EmbedderFailed`."""

    @abstractmethod
    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """The unit vectors of stored texts, shape (len(texts), dims). Raises `EmbedderFailed`."""


def has_substance(text: str) -> bool:
    """Whether a text has a letter or digit; without one it gets no vector."""
    return any(character.isalnum() for character in text)


def unit(vectors: Vectors) -> Vectors:
    """Rows scaled to length 1; a zero row stays zero."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: Vectors = (vectors / np.where(norms > 0, norms, 1)).astype(np.float32)
    return scaled


def checked(vectors: Vectors, *, count: int, dims: int) -> Vectors:
    """The vectors, after the checks that none is missing, misshapen, zero or not finite."""
    if vectors.shape != (count, dims):
        raise EmbedderFailed("embedder_wrong_shape", retryable=False)
    if not np.isfinite(vectors).all() or not (np.linalg.norm(vectors, axis=1) > 0).all():
        raise EmbedderFailed("embedder_degenerate_vector", retryable=False)
    return unit(vectors)
