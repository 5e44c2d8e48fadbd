"""The product's web application with the vectors of queries given: what a search costs beside its embedding.

The file of vectors is named by MEMORY_BENCH_VECTORS; `texts` and `vectors` in it are of one length.
"""

import os
from typing import Any

import numpy as np

from memory_platform.wsgi import application

__all__ = ["application"]


def _give(path: str) -> None:
    from apps.graph.embedders import QueryEmbedding
    from apps.graph.embedders.active import active
    from apps.search import found

    stored = np.load(path)
    vectors = dict(zip(stored["texts"].tolist(), stored["vectors"], strict=True))

    def given(text: str) -> Any:
        space = active()
        assert space is not None
        return QueryEmbedding("ready", space.id, space.model_id, vectors[text])

    vars(found)["embed_query"] = given


_give(os.environ["MEMORY_BENCH_VECTORS"])
