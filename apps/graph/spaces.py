"""Vector spaces: registering, filling beside the active one, and the swap when nothing is missing.

The law: queries use the one active space, and two spaces are never compared. A swap happens only when every live
claim and passage has its row in the new space; the rows of the old one go afterwards, by a command of its own.
Run with the owner's login: an index is made, and rows of every owner are counted.
"""

from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from apps.core import clock
from apps.graph.embedders.active import forget_active
from apps.graph.models import Embedder

REGISTERED, FILLING, ACTIVE, RETIRED = "registered", "filling", "active", "retired"

_COVERAGE = """
SELECT count(*), count(v.node_id) FILTER (WHERE v.state <> 'failed')
FROM graph_node n LEFT JOIN graph_vector v
  ON v.principal_id = n.principal_id AND v.embedder_id = %s AND v.node_id = n.id
WHERE n.kind <> 'structural' AND n.archived_at IS NULL AND n.superseded_at IS NULL
"""
_RECOUNT = """
UPDATE graph_corpus c SET vectors = coalesce(found.vectors, 0), revision = c.revision + 1
FROM graph_corpus same LEFT JOIN (
  SELECT n.principal_id, CASE n.kind WHEN 'episodic' THEN 1 ELSE 3 END AS kind, count(*) AS vectors
  FROM graph_vector v JOIN graph_node n ON n.id = v.node_id
  WHERE v.embedder_id = %s AND v.state = 'ready' GROUP BY 1, 2) found
  ON found.principal_id = same.principal_id AND found.kind = same.kind
WHERE c.principal_id = same.principal_id AND c.kind = same.kind
"""


class SpaceRefused(Exception):
    """The space cannot do that now; the message says why, for the operator."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Live claims and passages, and how many of them have their row in a space."""

    live: int
    covered: int

    @property
    def complete(self) -> bool:
        return self.covered >= self.live


def coverage(space: Embedder) -> Coverage:
    with connection.cursor() as cursor:
        cursor.execute(_COVERAGE, [space.pk])
        return Coverage(*cursor.fetchone())


def register(*, name: str, model_id: str, dims: int, config: dict[str, Any]) -> Embedder:
    """A new space with its index; nothing is embedded yet. Raises SpaceRefused."""
    if Embedder.objects.filter(model_id=model_id).exists():
        raise SpaceRefused("This model is registered already")
    if not 1 <= dims <= 4_000:
        raise SpaceRefused("A half-precision vector that is indexed has 1 to 4,000 dimensions")
    with transaction.atomic():
        space = Embedder.objects.create(
            name=name, model_id=model_id, dims=dims, config=config, state=REGISTERED
        )
        with connection.cursor() as cursor:
            cursor.execute(
                f"CREATE INDEX graph_vector_hnsw_{space.pk} ON graph_vector USING hnsw "
                f"((vec::halfvec({dims})) halfvec_cosine_ops) WITH (m = 16, ef_construction = 64) "
                f"WHERE embedder_id = {space.pk}"
            )
    return space


def fill(space: Embedder) -> None:
    """Let the background task make vectors in this space, beside the active one."""
    if space.state not in (REGISTERED, RETIRED):
        raise SpaceRefused(f"The space is {space.state}")
    Embedder.objects.filter(pk=space.pk).update(state=FILLING)


def activate(space: Embedder) -> Coverage:
    """Make a space the active one. Raises SpaceRefused while a live row is not covered."""
    with transaction.atomic():
        found = coverage(space)
        if not found.complete:
            raise SpaceRefused(
                f"{found.live - found.covered} of {found.live} live rows have no vector in it yet"
            )
        Embedder.objects.filter(state=ACTIVE).update(state=RETIRED)
        Embedder.objects.filter(pk=space.pk).update(state=ACTIVE, activated_at=clock.now())
        with connection.cursor() as cursor:
            cursor.execute(_RECOUNT, [space.pk])
    forget_active()
    return found


def empty(space: Embedder) -> int:
    """Delete the vectors of a retired space; the number deleted."""
    if space.state != RETIRED:
        raise SpaceRefused(f"The space is {space.state}; only a retired one is emptied")
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM graph_vector WHERE embedder_id = %s", [space.pk])
        return int(cursor.rowcount)
