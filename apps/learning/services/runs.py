"""The life of an evaluation or a holdout in the background.

The law: a run ends once; its result is stored in the transaction that ends it; what a caller did wrong is a stable
code on the run and no failure of the job; what a dead worker left is taken up again, a few times.
"""

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.db import InterfaceError, OperationalError, transaction

from apps.core import clock
from apps.core.db.sessions import UnknownPrincipal, current_principal, principal_session
from apps.core.problems import Problem
from apps.learning.exceptions import AlreadyEnded, LearningInputError
from apps.learning.models import Evaluation, Holdout, RunStatus
from apps.learning.services.watch import Cancelled, Watch
from apps.operations.tasks_base import PlatformTask

log = structlog.get_logger(__name__)

Run = TypeVar("Run", Evaluation, Holdout)
MOST_ATTEMPTS = 3
LOST, TIME_LIMIT, INTERNAL = "lost", "time_limit", "internal_error"


def send(task: PlatformTask, run_id: UUID) -> None:
    """Have a worker begin the run of the session's principal once its row is committed.

    A broker that does not answer costs no run: the schedule sends again what nobody began.
    """
    principal_id = current_principal().principal_id

    def deliver() -> None:
        try:
            task.delay(principal_id, run_id)
        except Exception as error:  # the broker's own errors are many
            log.warning("learning_run_not_sent", error=type(error).__name__)

    transaction.on_commit(deliver)


def cancel(model: type[Run], run_id: UUID, missing: type[Problem]) -> None:
    """Ask a run of the session's principal to stop. One that nobody began ends at once; twice is once.

    Raises `missing`, AlreadyEnded.
    """
    run = _own(model).select_for_update().filter(pk=run_id).first()
    if run is None:
        raise missing
    if run.status in (RunStatus.SUCCEEDED, RunStatus.FAILED):
        raise AlreadyEnded
    now = clock.now()
    if run.status == RunStatus.QUEUED:
        run.status, run.finished_at = RunStatus.CANCELLED, now
    run.cancel_requested_at = run.cancel_requested_at or now
    run.save(update_fields=["status", "finished_at", "cancel_requested_at"])


def perform(
    model: type[Run], principal_id: UUID, run_id: UUID, work: Callable[[Run, Watch], None]
) -> dict[str, int]:
    """Take a run up and end it; outside of any session. `work` stores the result and calls `succeed`.

    Returns counts for the job. Raises what is nobody's input: the job then fails, and alarms.
    """
    try:
        with principal_session(principal_id):
            run = _begin(model, run_id)
    except UnknownPrincipal:  # disabled or erased since
        return {}
    if run is None:
        return {}
    try:
        with Watch(model, principal_id, run_id) as watch:
            work(run, watch)
        return {"succeeded": 1}
    except Cancelled:
        _end(model, principal_id, run_id, RunStatus.CANCELLED)
        return {"cancelled": 1}
    except LearningInputError as refused:
        _end(model, principal_id, run_id, RunStatus.FAILED, refused.code)
        return {"failed": 1}
    except Problem as refused:
        _end(model, principal_id, run_id, RunStatus.FAILED, refused.shown_code)
        return {"failed": 1}
    except (OperationalError, InterfaceError):
        raise  # the database is away: the run stays open and is taken up again
    except SoftTimeLimitExceeded:
        _end(model, principal_id, run_id, RunStatus.FAILED, TIME_LIMIT)
        return {"failed": 1}
    except Exception:
        _end(model, principal_id, run_id, RunStatus.FAILED, INTERNAL)
        raise


def succeed(run: Run) -> None:
    """End a run well, in the transaction that stores its result. Raises Cancelled where it was stopped before."""
    ended = (
        _own(type(run))
        .filter(pk=run.pk, status=RunStatus.RUNNING, cancel_requested_at=None)
        .update(status=RunStatus.SUCCEEDED, finished_at=clock.now(), phase="")
    )
    if not ended:
        raise Cancelled


def _begin(model: type[Run], run_id: UUID) -> Run | None:
    """The run, begun; None where it has ended, also by having been begun too often."""
    run: Run | None = _own(model).select_for_update().filter(pk=run_id).first()
    if run is None or run.has_ended:
        return None
    now = clock.now()
    if run.attempts >= MOST_ATTEMPTS or run.cancel_requested_at is not None:
        lost = run.cancel_requested_at is None
        run.status = RunStatus.FAILED if lost else RunStatus.CANCELLED
        run.failure_code, run.finished_at = LOST if lost else "", now
        run.save(update_fields=["status", "failure_code", "finished_at"])
        return None
    run.status, run.started_at, run.attempts = RunStatus.RUNNING, run.started_at or now, run.attempts + 1
    run.save(update_fields=["status", "started_at", "attempts"])
    return run


def _end(model: type[Run], principal_id: UUID, run_id: UUID, status: str, code: str = "") -> None:
    with principal_session(principal_id):
        _own(model).filter(pk=run_id, status=RunStatus.RUNNING).update(
            status=status, finished_at=clock.now(), failure_code=code, phase=""
        )


def _own(model: type[Run]) -> Any:
    return model._default_manager.filter(principal_id=current_principal().principal_id)
