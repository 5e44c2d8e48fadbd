"""The schedule is the code's, but what staff changed stays."""

from datetime import timedelta

import pytest
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from apps.core import clock
from apps.operations.beat import document_of, sync_schedule
from apps.operations.models import ScheduleDeclaration
from apps.operations.schedules import daily, every
from tests.support.tasks import declared_task

pytestmark = pytest.mark.django_db


def row() -> PeriodicTask:
    return PeriodicTask.objects.get(name="tests.task")


def test_declared_tasks_get_a_row_once() -> None:
    with declared_task(lambda: None, schedule=every(minutes=15)):
        sync_schedule()
        first = row()
        sync_schedule()
        assert row().pk == first.pk
        assert document_of(first) == {"every_seconds": 900}
        assert first.enabled
    with declared_task(lambda: None, schedule=daily("02:05")):
        sync_schedule()
    assert document_of(row()) == {"daily": "02:05"}
    assert row().pk == first.pk
    assert str(row().crontab.timezone) == "UTC"


def test_an_override_of_staff_stays_when_the_code_changes() -> None:
    with declared_task(lambda: None, schedule=every(minutes=15)):
        sync_schedule()
    hourly, _ = IntervalSchedule.objects.get_or_create(every=1, period="hours")
    PeriodicTask.objects.filter(name="tests.task").update(interval=hourly, enabled=False)
    with declared_task(lambda: None, schedule=every(minutes=10)):
        sync_schedule()
        sync_schedule()
    assert document_of(row()) == {"every_seconds": 3600}
    assert not row().enabled


def test_a_task_that_is_gone_is_switched_off_and_comes_back_as_declared() -> None:
    with declared_task(lambda: None, schedule=every(minutes=15)):
        sync_schedule()
    sync_schedule()
    assert not row().enabled
    with declared_task(lambda: None, schedule=every(minutes=20)):
        sync_schedule()
    assert row().enabled
    assert document_of(row()) == {"every_seconds": 1200}


def test_rows_of_staff_are_left_alone() -> None:
    hourly, _ = IntervalSchedule.objects.get_or_create(every=1, period="hours")
    PeriodicTask.objects.create(name="mine", task="tests.task", interval=hourly)
    sync_schedule()
    assert PeriodicTask.objects.get(name="mine").enabled
    assert not ScheduleDeclaration.objects.filter(name="mine").exists()


@pytest.mark.parametrize(("misfire", "kept"), [("run_once", True), ("skip", False)])
def test_what_came_due_while_beat_was_away_is_sent_only_for_run_once(misfire, kept) -> None:
    long_ago = clock.now() - timedelta(days=2)
    with declared_task(lambda: None, schedule=daily("02:00"), misfire=misfire):
        sync_schedule()
        PeriodicTask.objects.filter(name="tests.task").update(last_run_at=long_ago)
        sync_schedule()
    assert (row().last_run_at == long_ago) is kept
