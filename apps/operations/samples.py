"""Samples: what tasks measure. `/metrics` shows the newest of each series with its time, pages draw the past."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection, transaction

from apps.core import clock
from apps.core.ids import uuid7
from apps.operations.models import NewestSample, Sample

NAME = re.compile(r"[a-z][a-z0-9_]{0,79}")
CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+-]{0,99}")


@dataclass(frozen=True, slots=True)
class Reading:
    """One measurement. `name` is a metric's (`memory_…` is put before it), labels are codes, value a number."""

    name: str
    value: float
    labels: Mapping[str, str] | None = None
    workspace: UUID | None = None

    def check(self) -> None:
        """Raises ValueError for anything but a finite number under codes, without showing it."""
        labels = dict(self.labels or {})
        codes = all(NAME.fullmatch(name) and CODE.fullmatch(value) for name, value in labels.items())
        if not NAME.fullmatch(self.name) or not codes or not math.isfinite(self.value):
            raise ValueError("a sample is a finite number under a name and labels that are codes")


NEWEST = """
  INSERT INTO operations_newestsample (id, workspace_id, name, labels, value, at)
  VALUES (%s, %s, %s, %s, %s, %s)
  ON CONFLICT (workspace_id, name, labels) DO UPDATE SET value = excluded.value, at = excluded.at
  WHERE operations_newestsample.at <= excluded.at
"""


def record(readings: Iterable[Reading], *, at: datetime | None = None) -> int:
    """Store readings of one moment (now, when not given), outside of sessions. Returns how many.

    Raises ValueError for a reading that is not a number under codes.
    """
    moment, taken = at or clock.now(), list(readings)
    for reading in taken:
        reading.check()
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
