"""Keeps vectors of earlier benchmark runs, by model and text: the default model takes minutes for a collection."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from apps.graph.embedders import Embedder, Vectors

FOLDER = Path(__file__).resolve().parent.parent / "var" / "benchmarks"


class KeptVectors:
    """Vectors on disk, one file a model."""

    def __init__(self, model_id: str) -> None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        self._path = FOLDER / (hashlib.sha256(model_id.encode()).hexdigest()[:16] + ".npz")
        self._known: dict[str, Vectors] = {}
        if self._path.exists():
            stored = np.load(self._path)
            self._known = dict(zip(stored["keys"].tolist(), stored["vectors"], strict=True))

    @staticmethod
    def _key(kind: str, text: str) -> str:
        return hashlib.sha256(f"{kind}\n{text}".encode()).hexdigest()

    def passages(self, embedder: Embedder, texts: Sequence[str]) -> Vectors:
        """As `embedder.embed_passages`, but only for texts that are new."""
        keys = [self._key("passage", text) for text in texts]
        new = [number for number, key in enumerate(keys) if key not in self._known]
        if new:
            made = type(embedder).embed_passages(embedder, [texts[number] for number in new])
            self._known |= {keys[number]: vector for number, vector in zip(new, made, strict=True)}
        return np.vstack([self._known[key] for key in keys])

    def query(self, embedder: Embedder, text: str) -> Vectors:
        key = self._key("query", text)
        if key not in self._known:
            self._known[key] = embedder.embed_query(text)
        return self._known[key]

    def save(self) -> None:
        np.savez(self._path, keys=np.array(list(self._known)), vectors=np.vstack(list(self._known.values())))


def keep(embedder: Embedder) -> KeptVectors:
    """Let the loaded embedder answer from what was kept."""
    kept = KeptVectors(embedder.model_id)
    embedder.embed_passages = lambda texts: kept.passages(embedder, texts)  # type: ignore[method-assign]
    return kept
