"""An embedder behind HTTP: any server of the OpenAI-compatible `/v1/embeddings`."""

from collections.abc import Sequence

import httpx
import numpy as np

from .base import Embedder, EmbedderFailed, Vectors, checked

TIMEOUT_S = 8.0
BATCH = 64
MAX_ANSWER_BYTES = 16 * 1024 * 1024


class HttpEmbedder(Embedder):
    """Sends texts to a server that the operator configured; redirects are not followed.

    Args:
        url: base address, to which `/v1/embeddings` is added.
        model, revision: `<model>@<revision>` is the space's id, so a revision must not change its vectors.
        dims: declared dimensions; another shape in an answer is an error.
        query_prefix, passage_prefix: what the model wants before questions and passages, e.g. `query: `.
    """

    name = "http"
    local = False

    def __init__(
        self,
        *,
        url: str,
        model: str,
        revision: str,
        dims: int,
        api_key: str | None = None,
        query_prefix: str = "",
        passage_prefix: str = "",
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.dims = dims
        self.model_id = f"{model}@{revision}"
        self._model = model
        self._prefixes = query_prefix, passage_prefix
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx.Client(
            base_url=url, headers=headers, timeout=TIMEOUT_S, follow_redirects=False, transport=transport
        )

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self._embed([self._prefixes[0] + text])[0]
        return vector

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.empty((0, self.dims), np.float32)
        prefixed = [self._prefixes[1] + text for text in texts]
        return np.vstack([self._embed(prefixed[i : i + BATCH]) for i in range(0, len(prefixed), BATCH)])

    def _embed(self, texts: list[str]) -> Vectors:
        try:
            answer = self._client.post("/v1/embeddings", json={"model": self._model, "input": texts})
        except httpx.TimeoutException as error:
            raise EmbedderFailed("embedder_timeout") from error
        except httpx.HTTPError as error:
            raise EmbedderFailed("embedder_unreachable") from error
        if answer.status_code != 200:
            raise EmbedderFailed(
                f"embedder_status_{answer.status_code}",
                retryable=answer.status_code in {408, 429} or answer.status_code >= 500,
            )
        if len(answer.content) > MAX_ANSWER_BYTES:
            raise EmbedderFailed("embedder_malformed_answer", retryable=False)
        try:
            items = sorted(answer.json()["data"], key=lambda item: item["index"])
            rows = np.array([item["embedding"] for item in items], dtype=np.float32)
        except (ValueError, KeyError, TypeError) as error:
            raise EmbedderFailed("embedder_malformed_answer", retryable=False) from error
        return checked(rows, count=len(texts), dims=self.dims)
