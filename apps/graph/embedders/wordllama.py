"""The small embedder: static word vectors, bundled in the wheel; takes over where the default cannot run."""

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import numpy as np

from .base import Embedder, EmbedderFailed, Vectors, checked
from .windows import embed_windowed


class WordLlama(Embedder):
    """Mean of token vectors; questions and passages alike."""

    name = "wordllama"
    local = True
    dims = 256

    def __init__(self) -> None:
        try:
            import wordllama

            folder = Path(wordllama.__file__).parent
            self._model = wordllama.WordLlama.load(cache_dir=folder, dim=self.dims, disable_download=True)
            version = ".".join(metadata.version("wordllama").split(".")[:3])
        except (ImportError, OSError, ValueError) as error:
            raise EmbedderFailed("embedder_not_usable_here", retryable=False) from error
        self.model_id = f"wordllama@{version}/l2_supercat_{self.dims}"

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self.embed_passages([text])[0]
        return vector

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self.dims), np.float32)
        rows = embed_windowed(texts, self._count, lambda part: np.asarray(self._model.embed(part, norm=True)))
        return checked(rows, count=len(texts), dims=self.dims)

    def _count(self, text: str) -> int:
        return len(self._model.tokenizer.encode(text, add_special_tokens=False).ids)
