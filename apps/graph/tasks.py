"""Upkeep of the graph."""

import random
import threading
import time
from collections import Counter
from datetime import timedelta
from uuid import UUID

import structlog
from django.db import connection

from apps.core import clock
from apps.core.db.sessions import UnknownPrincipal, maintenance_session
from apps.graph.embedders.active import Registered, active, registered
from apps.graph.services import embed_missing
from apps.operations import samples
from apps.operations.tasks_base import daily, every, task

log = structlog.get_logger(__name__)

BUDGET_S = 45.0
"""Seconds after which a run begins no further batch; the next run goes on."""
OWNERS = 100
VERIFY_BUDGET_S = 35 * 60.0
"""Seconds after which a night's recount begins no further owner."""
SOON_S, APART_S = 1.0, 10.0
"""Seconds from a write to the run that it asks for, and between two runs that one process asks for."""


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


class _Asked:
    """When the last run that this process asked for begins, on the monotonic clock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begins = -APART_S

    def wait(self, now: float) -> float | None:
        """Seconds until the run to ask for; None when one that is still to come will do."""
        with self._lock:
            if self._begins > now:
                return None
            self._begins = max(now + SOON_S, self._begins + APART_S)
            return self._begins - now


_asked = _Asked()


def embed_soon() -> None:
    """Ask for a run of `embed` after a write was committed; many writes ask once. Never fails: the schedule
    comes within the minute anyway."""
    seconds = _asked.wait(time.monotonic())
    if seconds is None:
        return
    try:
        embed.apply_async(countdown=seconds, retry=False)
    except Exception as error:  # the broker's own errors are many
        log.warning("embed_not_sent", error=type(error).__name__)


@task(
    name="graph.verify",
    schedule=daily("02:40"),
    lease=timedelta(minutes=45),
    soft_limit=timedelta(minutes=40),
    misfire="run_once",
)
def verify() -> dict[str, int]:
    """Recount the lexical statistics and the vectors of every owner, repair what differs, and count it."""
    until = time.monotonic() + VERIFY_BUDGET_S
    owners = all_owners()
    # Where one night is too short for all, each night takes others.
    random.shuffle(owners)
    checked = drifted = repaired = 0
    for owner in owners:
        if time.monotonic() > until:
            break
        found = recount(owner)
        checked, drifted, repaired = checked + 1, drifted + bool(found), repaired + found
    samples.record([samples.Reading("graph_lexical_drift", float(repaired))])
    return {"owners": checked, "drifted": drifted, "repaired": repaired, "left": len(owners) - checked}


def all_owners() -> list[UUID]:
    """Principals with a corpus."""
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute("SELECT graph_owners()")
        return [owner for (owner,) in cursor.fetchall()]


def recount(owner: UUID) -> int:
    """Count an owner's indexes anew and repair them; the number of rows that were wrong."""
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute("SELECT graph_recount(%s)", [owner])
        return int(cursor.fetchone()[0])
