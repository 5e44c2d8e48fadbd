"""Background work of operations itself."""

from datetime import timedelta

from apps.core import audit
from apps.core.db.sessions import maintenance_session
from apps.operations import alarms, expiry, pruning, reviews
from apps.operations import watch as watching
from apps.operations.alarms.delivery import deliver_due
from apps.operations.erasure import tasks as erasure_tasks
from apps.operations.tasks_base import daily, every, task

__all__ = ["deliver", "erasure_tasks", "prune", "verify_audit", "watch"]

AUDIT_SOURCE = "operations.audit"
CHAIN_BROKEN = "chain_broken"


@task(
    name="operations.watch",
    schedule=every(minutes=1),
    lease=timedelta(minutes=2),
    soft_limit=timedelta(seconds=55),
    misfire="skip",
    freshness=timedelta(minutes=5),
)
def watch() -> dict[str, int]:
    """Look for overdue jobs, lost runs and backlogs, and raise or resolve their alarms."""
    return watching.watch()


@task(
    name="operations.deliver",
    schedule=every(minutes=1),
    lease=timedelta(minutes=11),
    soft_limit=timedelta(minutes=9),
    misfire="skip",
    freshness=timedelta(minutes=15),
)
def deliver() -> dict[str, int]:
    """Send the notices that are due."""
    return deliver_due()


@task(
    name="operations.verify_audit",
    schedule=daily("02:00"),
    lease=timedelta(minutes=45),
    soft_limit=timedelta(minutes=40),
    misfire="run_once",
)
def verify_audit() -> dict[str, int]:
    """Recompute the hash chains of the audit log; a broken one is an alarm."""
    with maintenance_session():
        chains = audit.verify()
    broken = sum(chain.broken is not None for chain in chains)
    alarms.settle(source=AUDIT_SOURCE, readings={CHAIN_BROKEN: {"chains": broken}} if broken else {})
    return {"entries": sum(chain.entries for chain in chains), "broken_chains": broken}


@task(
    name="operations.prune",
    schedule=daily("03:30"),
    lease=timedelta(minutes=45),
    soft_limit=timedelta(minutes=40),
    misfire="run_once",
)
def prune() -> dict[str, int]:
    """Delete what operations have kept for their full term. A kind that fails leaves the others done."""
    return expiry.drain_group(pruning.GROUP)


@task(
    name="operations.review_due_dates",
    schedule=daily("04:10"),
    lease=timedelta(minutes=45),
    soft_limit=timedelta(minutes=40),
    misfire="run_once",
)
def review_due_dates() -> dict[str, int]:
    """Alarm on overdue retention reviews, and carry out approved shortenings that are not."""
    return {"overdue": reviews.check_due(), "carried_out": reviews.carry_out()}


@task(
    name="operations.carry_out_reviews",
    lease=timedelta(minutes=45),
    soft_limit=timedelta(minutes=40),
    misfire="run_once",
)
def carry_out_reviews() -> dict[str, int]:
    """Move the deadlines of old rows for every approved shortening."""
    return {"carried_out": reviews.carry_out()}
