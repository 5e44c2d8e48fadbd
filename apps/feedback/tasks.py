"""Upkeep of the ledger of credits, of judgments, citations and ablations."""

import json
from datetime import timedelta
from uuid import UUID

from django.db import connection

from apps.core.db.sessions import maintenance_session
from apps.feedback import retention
from apps.operations import alarms, expiry
from apps.operations.models import Alarm
from apps.operations.tasks_base import daily, every, task

EDGES_A_RUN = 1000
SOURCE, DRIFT = "feedback.verify_ledger", "drift"


@task(
    name="feedback.prune_strength",
    schedule=daily("03:10"),
    lease=timedelta(minutes=15),
    soft_limit=timedelta(minutes=12),
    misfire="run_once",
)
def prune_strength() -> dict[str, int]:
    """Delete strengths of nothing that no credit stands behind."""
    return expiry.drain(retention.STRENGTHS).counts


@task(
    name=SOURCE,
    schedule=every(hours=1),
    lease=timedelta(minutes=10),
    soft_limit=timedelta(minutes=8),
    misfire="run_once",
)
def verify_ledger() -> dict[str, int]:
    """Compare the next edges with the sum of their credits; a drift is an alarm, and changes nothing."""
    checked, worst, drifted, clean = verify(EDGES_A_RUN)
    for workspace, edges in drifted.items():
        alarms.raise_alarm(
            source=SOURCE, reason=DRIFT, details={"edges": edges, "worst": worst}, workspace=workspace
        )
    if clean:
        _resolve_all()
    return {"checked": checked, "drifted": sum(drifted.values())}


def verify(batch: int) -> tuple[int, float, dict[UUID, int], bool]:
    """Edges checked, the worst difference, drifting edges by workspace, and whether a whole round was clean."""
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute("SELECT checked, worst, drifted, clean_round FROM feedback_verify_ledger(%s)", [batch])
        checked, worst, drifted, clean = cursor.fetchone()
    found = json.loads(drifted) if isinstance(drifted, str) else drifted
    return checked, worst, {UUID(workspace): edges for workspace, edges in found.items()}, clean


def _resolve_all() -> None:
    opened = Alarm.objects.filter(source=SOURCE, reason=DRIFT, resolved_at=None)
    for workspace in list(opened.values_list("workspace_id", flat=True)):
        alarms.resolve(source=SOURCE, reasons=[DRIFT], workspace=workspace)
