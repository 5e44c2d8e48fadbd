"""Reads of operations for pages, health and metrics."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import QuerySet

from apps.core import clock
from apps.operations.declarations import Declaration, declared
from apps.operations.models import Alarm, Job, Process

LIVE_WITHIN = timedelta(seconds=60)


def live_processes() -> QuerySet[Process]:
    """Processes seen within 60 seconds."""
    return Process.objects.filter(seen_at__gt=clock.now() - LIVE_WITHIN).order_by("kind", "started_at")


def live_process_ids() -> set[UUID]:
    return set(live_processes().values_list("id", flat=True))


def open_alarms() -> QuerySet[Alarm]:
    """Alarms that are not resolved, newest first; with the rows that the session may see."""
    return Alarm.objects.filter(resolved_at=None).order_by("-opened_at", "-id")


@dataclass(frozen=True, slots=True)
class Freshness:
    """How a scheduled job keeps its promise. Ages in seconds; `age` counts from when it was first known."""

    name: str
    schedule: str
    last_success_at: datetime | None
    age: float
    limit: float
    consecutive_failures: int
    last_failure_code: str

    @property
    def overdue(self) -> bool:
        return self.age > self.limit


def freshness() -> list[Freshness]:
    """Of every scheduled job that is declared, also of those that never ran."""
    jobs = {job.name: job for job in Job.objects.all()}
    now = clock.now()
    return [
        _freshness(declaration, jobs, now) for declaration in declared() if declaration.schedule is not None
    ]


def _freshness(declaration: Declaration, jobs: Mapping[str, Job], now: datetime) -> Freshness:
    job = jobs.get(declaration.name)
    since = (job.last_success_at or job.known_since) if job else now
    limit = declaration.freshness or timedelta.max
    return Freshness(
        name=declaration.name,
        schedule=str(declaration.schedule),
        last_success_at=job.last_success_at if job else None,
        age=max(0.0, (now - since).total_seconds()),
        limit=limit.total_seconds(),
        consecutive_failures=job.consecutive_failures if job else 0,
        last_failure_code=job.last_failure_code if job else "",
    )
