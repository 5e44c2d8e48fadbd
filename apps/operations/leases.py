"""Leases: at most one run of a task with the same arguments, whichever worker it is on.

A lease is one row, taken by one statement that compares and swaps, by the database's clock. It is free again
by its time, so a killed holder blocks nobody for longer; hard limits keep every run shorter than its lease.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection

from apps.operations.models import Lease


@dataclass(frozen=True, slots=True)
class Taken:
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Busy:
    """Another run holds it, for this many seconds at most."""

    seconds: float


TAKE = """
  INSERT INTO operations_lease (key, holder, taken_at, expires_at)
  VALUES (%(key)s, %(holder)s, statement_timestamp(), statement_timestamp() + make_interval(secs => %(lasts)s))
  ON CONFLICT (key) DO UPDATE
    SET holder = excluded.holder, taken_at = excluded.taken_at, expires_at = excluded.expires_at
    WHERE operations_lease.expires_at <= statement_timestamp()
  RETURNING expires_at
"""


def take(key: str, holder: UUID, lasts: timedelta) -> Taken | Busy:
    with connection.cursor() as cursor:
        cursor.execute(TAKE, {"key": key, "holder": holder, "lasts": lasts.total_seconds()})
        row = cursor.fetchone()
        if row is not None:
            return Taken(row[0])
        cursor.execute(
            "SELECT extract(epoch FROM expires_at - statement_timestamp())::float8 "
            "FROM operations_lease WHERE key = %s",
            [key],
        )
        left = cursor.fetchone()
    return Busy(max(0.0, left[0]) if left else 0.0)


def release(key: str, holder: UUID) -> bool:
    """Give it back; false when it was no longer the holder's."""
    deleted, _ = Lease.objects.filter(key=key, holder=holder).delete()
    return bool(deleted)
