"""Background work of learning."""

from collections import Counter
from datetime import timedelta
from typing import Any
from uuid import UUID

from celery.exceptions import SoftTimeLimitExceeded
from celery.signals import worker_ready
from django.db import InterfaceError, OperationalError, connection

from apps.core.db.sessions import UnknownPrincipal, maintenance_session, principal_session
from apps.feedback.retention import EVIDENCE
from apps.learning import alerts
from apps.learning.exceptions import UnknownProfile
from apps.learning.services.evaluations import run_evaluation
from apps.learning.services.holdouts import run_holdout
from apps.learning.services.rechecks import active_profiles, recheck_profile
from apps.operations import expiry, samples
from apps.operations.tasks_base import Retry, daily, every, task
from apps.retrieval.policy import SCORER_CONTRACT

CHECKED, ACTIVE = "profiles_rechecked", "profiles_active"
"""Samples of the re-check: looked at under a scorer contract, and active in a workspace."""
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


@task(
    name="learning.recheck",
    schedule=daily("03:20"),
    lease=timedelta(minutes=50),
    soft_limit=timedelta(minutes=45),
    misfire="run_once",
)
def recheck() -> dict[str, int]:
    """Look at every active profile: its term, whether it applies, and what it is worth on what was judged since.

    One that cannot be looked at fails the job once the others are done.
    """
    outcomes: Counter[str] = Counter()
    faults: list[Exception] = []
    # Where the last profile has gone, the count is 0 and not that of before.
    active = dict.fromkeys((s.workspace_id for s in samples.newest() if s.name == ACTIVE), 0)
    for one in active_profiles():
        try:
            with principal_session(one.principal_id):
                checked = recheck_profile(profile_id=one.profile_id)
        except (UnknownPrincipal, UnknownProfile):  # disabled or erased since
            continue
        except SoftTimeLimitExceeded:
            raise
        except Exception as fault:
            faults.append(fault)
            active[one.workspace_id] = active.get(one.workspace_id, 0) + 1
            continue
        outcomes[checked.outcome] += 1
        if checked.still_active:
            active[one.workspace_id] = active.get(one.workspace_id, 0) + 1
            alerts.settle(one.workspace_id, one.profile_id, checked.alarms)
    readings = [samples.Reading(ACTIVE, count, None, workspace) for workspace, count in active.items()]
    if faults:
        samples.record(readings)
        raise faults[0]
    contract = {"contract": SCORER_CONTRACT}
    samples.record([*readings, samples.Reading(CHECKED, outcomes.total(), contract)])
    return dict(outcomes)


@worker_ready.connect(weak=False)
def recheck_after_bump(**kwargs: Any) -> None:
    """A worker that starts with a scorer contract under which nothing was checked has the profiles checked at once."""
    known = {sample.labels.get("contract") for sample in samples.newest() if sample.name == CHECKED}
    if SCORER_CONTRACT not in known:
        recheck.delay()
    connection.close()
