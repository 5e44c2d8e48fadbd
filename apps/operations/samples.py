"""Samples: what tasks measure. `/metrics` shows the newest of each series with its time, pages draw the past."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection, transaction

from apps.core import clock
from apps.core.ids import uuid7
from apps.operations.models import NewestSample, Sample


@dataclass(frozen=True, slots=True)
class Reading:
    """One measurement. `name` is a metric's (`memory_…` is put before it), labels are codes, value a number."""

    name: str
    value: float
    labels: Mapping[str, str] | None = None
    workspace: UUID | None = None


NEWEST = """
  INSERT INTO operations_newestsample (id, workspace_id, name, labels, value, at)
  VALUES (%s, %s, %s, %s, %s, %s)
  ON CONFLICT (workspace_id, name, labels) DO UPDATE SET value = excluded.value, at = excluded.at
  WHERE operations_newestsample.at <= excluded.at
"""


def record(readings: Iterable[Reading], *, at: datetime | None = None) -> int:
    """Store readings of one moment (now, when not given). Outside of sessions. Returns how many."""
    moment, taken = at or clock.now(), list(readings)
    # In one order, so that two tasks that measure the same series cannot block each other.
    taken.sort(
        key=lambda reading: (reading.name, str(reading.workspace), sorted((reading.labels or {}).items()))
    )
    with transaction.atomic():
        Sample.objects.bulk_create(
            Sample(
                workspace_id=reading.workspace,
                name=reading.name,
                labels=dict(reading.labels or {}),
                value=reading.value,
                at=moment,
            )
            for reading in taken
        )
        with connection.cursor() as cursor:
            cursor.executemany(
                NEWEST,
                [
                    (
                        uuid7(),
                        reading.workspace,
                        reading.name,
                        json.dumps(dict(reading.labels or {})),
                        reading.value,
                        moment,
                    )
                    for reading in taken
                ],
            )
    return len(taken)


def newest() -> list[NewestSample]:
    """The newest sample of every series."""
    return list(NewestSample.objects.order_by("name", "workspace_id", "labels"))
