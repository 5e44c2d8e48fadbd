"""Beat's schedule: declared with the tasks, kept in django-celery-beat's tables, where staff may override it.

Rows are never deleted and made anew. A row is brought up to date only while it still says what the code said
last; once staff have changed its schedule, it stays as they left it. Whether it is enabled is theirs alone.
"""

from typing import Any

import structlog
from django.db import transaction
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask, PeriodicTasks
from django_celery_beat.schedulers import DatabaseScheduler

from apps.core import clock
from apps.operations.declarations import Declaration, declared
from apps.operations.models import Job, ScheduleDeclaration
from apps.operations.schedules import Daily, Every, Schedule

logger = structlog.get_logger(__name__)

GONE = {"gone": True}


def sync_schedule() -> None:
    """Make the tables hold every declared task, and switch off those that the code no longer knows."""
    with transaction.atomic():
        names = [_sync(declaration) for declaration in declared() if declaration.schedule is not None]
        _switch_off_gone(names)
        PeriodicTasks.update_changed()


def _sync(declaration: Declaration) -> str:
    assert declaration.schedule is not None
    wanted = declaration.schedule.document()
    known = ScheduleDeclaration.objects.filter(name=declaration.name).first()
    row = PeriodicTask.objects.filter(name=declaration.name).first()
    Job.objects.get_or_create(name=declaration.name, defaults={"known_since": clock.now()})
    if row is None:
        PeriodicTask.objects.create(
            name=declaration.name,
            task=declaration.name,
            description=declaration.description,
            **_columns(declaration.schedule),
        )
    else:
        _update(row, declaration, known)
    ScheduleDeclaration.objects.update_or_create(
        name=declaration.name, defaults={"declared": wanted, "applied_at": clock.now()}
    )
    return declaration.name


def _update(row: PeriodicTask, declaration: Declaration, known: ScheduleDeclaration | None) -> None:
    assert declaration.schedule is not None
    wanted, present = declaration.schedule.document(), document_of(row)
    ours = known is not None and present == known.declared
    fields: dict[str, Any] = {}
    if present != wanted and ours:
        fields |= _columns(declaration.schedule)
    if known is not None and known.declared == GONE:
        fields |= {"enabled": True, **_columns(declaration.schedule)}
    # Without this, beat would send at once what came due while it was away.
    if declaration.misfire == "skip" and row.last_run_at is not None:
        fields["last_run_at"] = clock.now()
    if fields:
        PeriodicTask.objects.filter(pk=row.pk).update(**fields)


def _switch_off_gone(names: list[str]) -> None:
    gone = ScheduleDeclaration.objects.exclude(name__in=names)
    PeriodicTask.objects.filter(name__in=list(gone.values_list("name", flat=True))).update(enabled=False)
    gone.update(declared=GONE)


def document_of(row: PeriodicTask) -> dict[str, Any]:
    """What a row says, in the words of `schedules`; other kinds of schedule as themselves."""
    if row.interval is not None:
        return {"every_seconds": int(row.interval.schedule.run_every.total_seconds())}
    found = row.crontab
    if found is not None:
        if (found.day_of_week, found.day_of_month, found.month_of_year, str(found.timezone)) == (
            "*",
            "*",
            "*",
            "UTC",
        ) and (found.hour.isdigit() and found.minute.isdigit()):
            return {"daily": f"{int(found.hour):02d}:{int(found.minute):02d}"}
        return {"crontab": str(found)}
    return {"other": True}


def _columns(schedule: Schedule) -> dict[str, Any]:
    if isinstance(schedule, Every):
        interval, _ = IntervalSchedule.objects.get_or_create(
            every=int(schedule.interval.total_seconds()), period=IntervalSchedule.SECONDS
        )
        return {"interval": interval, "crontab": None}
    assert isinstance(schedule, Daily)
    parts = {
        "minute": str(schedule.minute),
        "hour": str(schedule.hour),
        "day_of_week": "*",
        "day_of_month": "*",
        "month_of_year": "*",
        "timezone": "UTC",
    }
    cron = CrontabSchedule.objects.filter(**parts).first() or CrontabSchedule.objects.create(**parts)
    return {"crontab": cron, "interval": None}


class Scheduler(DatabaseScheduler):
    """django-celery-beat's scheduler over our declarations, without entries of its own."""

    def setup_schedule(self) -> None:
        sync_schedule()
        logger.info("schedule_synced", count=ScheduleDeclaration.objects.count())
