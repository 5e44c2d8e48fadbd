"""Upkeep of the graph."""

import time
from collections import Counter
from datetime import timedelta
from uuid import UUID

from django.db import connection

from apps.core import clock
from apps.core.db.sessions import UnknownPrincipal, maintenance_session
from apps.graph.embedders.active import Registered, active, registered
from apps.graph.services import embed_missing
from apps.operations.tasks_base import every, task

BUDGET_S = 45.0
"""Seconds after which a run begins no further batch; the next run goes on."""
OWNERS = 100


@task(
    name="graph.embed",
    schedule=every(minutes=1),
    lease=timedelta(minutes=5),
    soft_limit=timedelta(minutes=4),
    misfire="skip",
)
def embed() -> dict[str, int]:
    """Give vectors to rows that have none, owner by owner, as long as the time allows."""
    until = time.monotonic() + BUDGET_S
    counts: Counter[str] = Counter()
    for space in (active(), registered(state="filling")):
        owners = owners_to_embed(space.id) if space else []
        for owner in owners:
            _embed_owner(owner, space, until, counts)
    return dict(counts)


def _embed_owner(owner: UUID, space: Registered | None, until: float, counts: Counter[str]) -> None:
    more = True
    while more and time.monotonic() < until:
        try:
            run = embed_missing(principal=owner, space=space)
        except UnknownPrincipal:  # disabled or erased since
            return
        counts.update(ready=run.ready, empty=run.empty, failed=run.failed)
        more = run.more


def owners_to_embed(embedder_id: int) -> list[UUID]:
    """Principals with rows that wait for a vector in that space, at most `OWNERS`."""
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute("SELECT graph_owners_to_embed(%s, %s, %s)", [embedder_id, clock.now(), OWNERS])
        return [owner for (owner,) in cursor.fetchall()]
