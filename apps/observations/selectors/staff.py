"""Reads of the journal's staff pages, in a staff session: each answers for the workspaces that the user may see."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection
from django.db.models import Count, Min, Q, QuerySet
from django.db.models.functions import Now

from apps.core import clock
from apps.core.models import StoredPolicy
from apps.observations.models import ExportRecord
from apps.observations.policy import KIND
from apps.operations.models import NewestSample

SAMPLES = ("observation_expired_records", "observation_expired_texts")
SAMPLED_WITHIN = timedelta(minutes=15)
"""Three times the interval at which the status is sampled: an older sample says nothing of now."""

BACKLOG = """
  SELECT name, date_bin('1 hour', at, %(since)s), max(value) FROM operations_sample
  WHERE name = ANY (%(names)s) AND workspace_id IS NULL AND at >= %(since)s
  GROUP BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class Stop:
    """A kill switch that is on; of the installation where `workspace_id` is None."""

    id: UUID
    workspace_id: UUID | None
    thrown_at: datetime


@dataclass(frozen=True, slots=True)
class LastDeadlines:
    """Until when anything of a workspace is left, rows that nobody sees any more counted; None: nothing is."""

    record: datetime | None
    text: datetime | None


def stops(workspace_id: UUID | None = None) -> list[Stop]:
    """Kill switches that are on, of the installation first; narrowed to one workspace where given."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, workspace_id, thrown_at FROM observations_stops() "
            "WHERE %(of)s::uuid IS NULL OR workspace_id IS NULL OR workspace_id = %(of)s::uuid "
            "ORDER BY workspace_id NULLS FIRST",
            {"of": workspace_id},
        )
        return [Stop(*row) for row in cursor.fetchall()]


def last_deadlines() -> dict[UUID, LastDeadlines]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT workspace_id, last_record, last_text FROM observations_last_deadlines()")
        return {row[0]: LastDeadlines(row[1], row[2]) for row in cursor.fetchall()}


def policies_of(workspace_ids: Collection[UUID]) -> dict[UUID, StoredPolicy]:
    """The collection policy in effect for each of the workspaces, the default's where it has none; one read."""
    found = (
        StoredPolicy.objects.filter(Q(workspace_id__in=workspace_ids) | Q(workspace=None), kind=KIND)
        .filter(effective_from__lte=Now())
        .order_by("workspace_id", "-effective_from")
        .distinct("workspace_id")
    )
    newest = {row.workspace_id: row for row in found}
    return {key: newest.get(key) or newest[None] for key in workspace_ids if key in newest or None in newest}


def backlog(hours: int) -> tuple[datetime, dict[tuple[str, datetime], float]]:
    """When the time begins, and the most that was overdue in each hour of it, by sample name and hour.

    An hour without a sample has no entry: it was not measured.
    """
    now = clock.now().replace(minute=0, second=0, microsecond=0)
    since = now - timedelta(hours=hours - 1)
    with connection.cursor() as cursor:
        cursor.execute(BACKLOG, {"names": list(SAMPLES), "since": since})
        return since, {(name, hour): value for name, hour, value in cursor.fetchall()}


def overdue_now() -> int | None:
    """Rows past their deadline at the last sample; None where the last one is too old to tell."""
    fresh = clock.now() - SAMPLED_WITHIN
    found = dict(
        NewestSample.objects.filter(name__in=SAMPLES, workspace=None, at__gte=fresh).values_list(
            "name", "value"
        )
    )
    return int(sum(found.values())) if len(found) == len(SAMPLES) else None


def overdue_copies() -> "QuerySet[ExportRecord]":
    """Exported copies past their last deadline whose deletion nobody has attested."""
    return ExportRecord.objects.filter(latest_expires_at__lte=clock.now(), attested_at=None, candidates__gt=0)


@dataclass(frozen=True, slots=True)
class OverdueCopies:
    """How many copies of a workspace are overdue, and since when the first one is."""

    workspace_id: UUID
    copies: int
    since: datetime


def overdue_copies_by_workspace(workspace_ids: Collection[UUID]) -> list[OverdueCopies]:
    """The longest overdue first."""
    counted = (
        overdue_copies()
        .filter(workspace_id__in=workspace_ids)
        .values_list("workspace_id")
        .annotate(copies=Count("id"), since=Min("latest_expires_at"))
        .order_by("since")
    )
    return [OverdueCopies(*row) for row in counted]
