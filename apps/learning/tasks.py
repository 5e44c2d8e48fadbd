"""Background work of learning."""

from datetime import timedelta
from uuid import UUID

from django.db import InterfaceError, OperationalError, connection

from apps.core.db.sessions import maintenance_session
from apps.feedback.retention import EVIDENCE
from apps.learning.services.evaluations import run_evaluation
from apps.learning.services.holdouts import run_holdout
from apps.operations import expiry
from apps.operations.tasks_base import Retry, daily, every, task

IDLE = timedelta(minutes=10)
"""How long a run may be open before it is sent again; one that is worked on is not begun twice."""


@task(
    name="learning.evaluate",
    lease=timedelta(minutes=35),
    soft_limit=timedelta(minutes=30),
    misfire="run_once",
    retry=Retry(delays=(30, 120), on=(OperationalError, InterfaceError)),
)
def evaluate(principal_id: UUID, evaluation_id: UUID) -> dict[str, int]:
    """Compute one offline evaluation."""
    return run_evaluation(principal_id=principal_id, evaluation_id=evaluation_id)


@task(
    name="learning.holdout",
    lease=timedelta(minutes=45),
    soft_limit=timedelta(minutes=40),
    misfire="run_once",
    retry=Retry(delays=(30, 120), on=(OperationalError, InterfaceError)),
)
def holdout(principal_id: UUID, holdout_id: UUID) -> dict[str, int]:
    """Run both arms of one holdout, and judge them."""
    return run_holdout(principal_id=principal_id, holdout_id=holdout_id)


@task(
    name="learning.resume",
    schedule=every(minutes=15),
    lease=timedelta(minutes=10),
    soft_limit=timedelta(minutes=5),
    misfire="run_once",
)
def resume() -> dict[str, int]:
    """Send again what nobody works on: the broker did not take it, or its worker died."""
    tasks = {"evaluation": evaluate, "holdout": holdout}
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT kind, principal_id, run_id FROM learning_open_runs(make_interval(secs => %s))",
            [IDLE.total_seconds()],
        )
        rows = cursor.fetchall()
    for kind, principal_id, run_id in rows:
        tasks[kind].delay(principal_id, run_id)
    return {"sent": len(rows)}


@task(
    name="learning.prune",
    schedule=daily("03:40"),
    lease=timedelta(minutes=45),
    soft_limit=timedelta(minutes=40),
    misfire="run_once",
)
def prune() -> dict[str, int]:
    """Delete judgments, citations, ablations, evaluations, holdouts and query sets past the days of the gate policy,
    and receipts that nothing keeps any more."""
    return expiry.drain_group(EVIDENCE)
