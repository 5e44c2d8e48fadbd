"""Reads of the graph for staff."""

from dataclasses import dataclass
from uuid import UUID

from django.db import connection


@dataclass(frozen=True, slots=True)
class VectorProgress:
    """Live claims and passages of a principal, and what became of their vectors in the active space.

    `empty` rows have no substance to embed and count as done; `failed` ones are tried again, or wait for another
    text after their last try.
    """

    live: int
    ready: int
    empty: int
    failed: int

    @property
    def done(self) -> int:
        """Rows that need nothing more."""
        return min(self.live, self.ready + self.empty)


def vector_progress(principal_id: UUID) -> VectorProgress | None:
    """How far the vectors of a principal are, in a staff session that sees its rows (`view_traces`,
    `curate`); else None."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT live, ready, without_substance, failed FROM graph_corpus_progress(%s)", [principal_id]
        )
        row = cursor.fetchone()
    return VectorProgress(*row) if row else None
