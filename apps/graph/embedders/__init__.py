"""Embedders: the port, its adapters, and the embedding of a query before any transaction."""

from .base import Embedder, EmbedderFailed, Vectors, has_substance
from .query import QueryEmbedding, embed_query

__all__ = ["Embedder", "EmbedderFailed", "QueryEmbedding", "Vectors", "embed_query", "has_substance"]
