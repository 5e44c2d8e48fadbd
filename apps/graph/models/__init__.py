"""The memory graph's tables: nodes and what is known of them, links between pages, and the two indexes."""

from .indexes import Corpus, Embedder, Posting, Term, Vector
from .nodes import Entity, Node, Passage, Path
from .pages import PageEdge

__all__ = [
    "Corpus",
    "Embedder",
    "Entity",
    "Node",
    "PageEdge",
    "Passage",
    "Path",
    "Posting",
    "Term",
    "Vector",
]
