"""Upkeep of the feedback memory."""

from datetime import timedelta

from django.db import connection

from apps.core import clock
from apps.core.db.sessions import monitor_session
from apps.operations import expiry, samples
from apps.operations.tasks_base import daily, every, task
from apps.traces import retention

WINDOW = timedelta(minutes=5)
LABELS = {"traces_recorded": "status", "traces_latency_ms": "quantile", "traces_stage": "stage"}


@task(
    name="traces.expire",
    schedule=every(hours=1),
    lease=timedelta(minutes=15),
    soft_limit=timedelta(minutes=12),
    misfire="run_once",
)
def expire() -> dict[str, int]:
    """Delete traces past their time, with all that hangs on them, after their credits were taken back."""
    return expiry.drain(retention.TRACES).counts


@task(
    name="traces.erase_text",
    schedule=every(hours=1),
    lease=timedelta(minutes=15),
    soft_limit=timedelta(minutes=12),
    misfire="run_once",
)
def erase_text() -> dict[str, int]:
    """Erase queries and reasons past their time; the traces stay."""
    return expiry.drain(retention.TEXTS).counts


@task(
    name="traces.prune_activation",
    schedule=daily("03:10"),
    lease=timedelta(minutes=15),
    soft_limit=timedelta(minutes=12),
    misfire="run_once",
)
def prune_activation() -> dict[str, int]:
    """Delete activation of next to nothing that nobody touched; it reads as zero before and after."""
    return expiry.drain(retention.ACTIVATION).counts


@task(
    name="traces.measure",
    schedule=every(minutes=5),
    lease=timedelta(minutes=4),
    soft_limit=timedelta(minutes=3),
    misfire="skip",
)
def measure() -> dict[str, int]:
    """Sample the last five minutes: traces by recording status, zero hits, save latency, age of the oldest.

    Stages are of the five minutes an hour ago, so that uses had time to come. The start page draws from these.
    """
    with monitor_session(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT workspace_id, name, label, value FROM traces_measure(%s)", [clock.now() - WINDOW]
        )
        rows = cursor.fetchall()
    readings = [
        samples.Reading(name, value, {LABELS[name]: label} if name in LABELS else None, workspace)
        for workspace, name, label, value in rows
    ]
    return {"samples": samples.record(readings)}
