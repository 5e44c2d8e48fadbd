"""What is known of the visible corpora before anything is searched."""

from collections import Counter
from dataclasses import dataclass
from uuid import UUID

from apps.core import canonical
from apps.core.db.cursors import Question, Rows, ask
from apps.core.db.wire import uuids
from apps.graph.analyser import SIMPLE
from apps.graph.models.indexes import CorpusKind
from apps.graph.models.nodes import STANDING

from .filters import Restriction

LANGUAGES = 4
CORPUS_COLUMNS = 8
"""Columns of a corpus; those behind are of all of them."""

# The rows of an index as the planner counts them: exact enough to tell one per cent.
SQL = f"""
SELECT c.principal_id, c.kind, c.nodes, c.total_len, c.vectors, c.languages, c.revision, c.content,
       (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = to_regclass(%(index)s)),
       EXISTS (SELECT FROM graph_pageedge WHERE principal_id = ANY(%(owners)s)),
       EXISTS (SELECT FROM graph_entity WHERE principal_id = ANY(%(owners)s)),
       EXISTS (SELECT FROM graph_node n WHERE n.principal_id = ANY(%(owners)s) AND {STANDING})
FROM graph_corpus c WHERE c.principal_id = ANY(%(owners)s)
"""


@dataclass(frozen=True, slots=True)
class CorpusRow:
    """One owner's corpus of one kind."""

    owner: UUID
    kind: int
    nodes: int
    total_len: int
    vectors: int
    languages: dict[str, int]
    revision: int
    content: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """Own and shared corpora, to be added up by kind.

    links, entities, standing: whether any are stored, so that nobody asks for what is not there.
    """

    rows: tuple[CorpusRow, ...]
    index_vectors: int
    links: bool = False
    entities: bool = False
    standing: bool = False

    def of_kind(self, kind: CorpusKind) -> tuple[int, float]:
        """(N, mean length) of a kind; a mean length of 0 never divides."""
        rows = [row for row in self.rows if row.kind == kind]
        nodes = sum(row.nodes for row in rows)
        return nodes, (sum(row.total_len for row in rows) / nodes if nodes else 0.0)

    def languages(self) -> list[str]:
        """The configurations under which a query is analysed, most frequent first."""
        counted: Counter[str] = Counter()
        for row in self.rows:
            counted.update(row.languages)
        ranked = sorted(counted, key=lambda name: (-counted[name], name))
        return [name for name in ranked if name != SIMPLE][:LANGUAGES]

    def vectors(self) -> int:
        return sum(row.vectors for row in self.rows)

    def embeddable(self) -> int:
        """Live rows that should have a vector: claims and passages."""
        return sum(row.nodes for row in self.rows if row.kind != CorpusKind.CODE)

    def digest(self) -> str:
        """Names the state of the visible corpora: equal digests mean equal corpora."""
        return canonical.checksum(
            sorted([str(row.owner), row.kind, str(row.revision), str(row.content)] for row in self.rows)
        )


def question(restriction: Restriction, embedder_id: int | None) -> Question[Statistics]:
    """The statistics, to be asked together with other things."""
    values = {"owners": uuids(restriction.owners), "index": f"graph_vector_hnsw_{embedder_id or 0}"}
    return Question(SQL, values, _statistics)


def read(restriction: Restriction, embedder_id: int | None) -> Statistics:
    """The statistics, in a session."""
    asked = question(restriction, embedder_id)
    ask(asked)
    return asked.answer


def _statistics(rows: Rows) -> Statistics:
    if not rows:
        return Statistics((), 0)
    index_vectors, links, entities, standing = rows[0][CORPUS_COLUMNS:]
    corpora = tuple(CorpusRow(*row[:CORPUS_COLUMNS]) for row in rows)
    return Statistics(corpora, index_vectors or 0, links, entities, standing)
