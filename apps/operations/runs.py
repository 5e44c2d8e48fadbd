"""The life of one run: lease, coalescing, job run row, outcome, retry. Called by the tasks of `tasks_base`.

Bookkeeping happens outside of sessions, as the process itself; the task's function opens the session it needs.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.db.models import F
from opentelemetry import trace

from apps.core import clock
from apps.core.ids import uuid7
from apps.operations import alarms, heartbeats, leases
from apps.operations.declarations import Counts, Declaration, find, from_wire
from apps.operations.holds import HoldCheckFailed, alarm_failed_check
from apps.operations.models import Job, JobRun
from apps.operations.models.jobs import Outcome
from apps.operations.selectors import live_process_ids

logger = structlog.get_logger(__name__)
tracer = trace.get_tracer("memory_platform.jobs")

FAILED = "failed"
LOST = "lost"
SOFT_LIMIT = "soft_limit"
DATABASE_AWAY_SECONDS = 10
MOST_LOST_ATTEMPTS = 3
CODE = re.compile(r"[A-Za-z0-9_.:-]{1,100}")
# Sender and runner may be two machines: a run counts for a call only when it surely began after it.
CLOCK_SKEW = timedelta(seconds=5)
# A process that has just started may not have written its first heartbeat.
GRACE = timedelta(seconds=60)


class JobFailed(RuntimeError):
    """A run failed; the message is the task's name and a code."""


@dataclass(frozen=True, slots=True)
class Call:
    """One message: arguments as they travelled, when it was first sent, and how often it was tried."""

    arguments: list[Any]
    sent_at: datetime
    attempt: int = 0

    def again(self) -> "Call":
        return replace(self, attempt=self.attempt + 1)


# Sends a call (again) after some seconds.
Send = Callable[[Call, float], None]


def perform(declaration: Declaration, call: Call, send: Send) -> Counts:
    """Run a task once, or say why not. Returns its counts; None when another run stands for this one."""
    run_id, key = uuid7(), declaration.lease_key(call.arguments)
    try:
        if _misfired(declaration, call):
            logger.info("job_skipped", job=declaration.name, code="misfire")
            return None
        taken = leases.take(key, run_id, declaration.lease)
        if isinstance(taken, leases.Busy):
            _wait(declaration, call, taken, send)
            return None
        if _stood_for(key, call):
            leases.release(key, run_id)
            return None
        _begin(declaration, call, run_id, key, taken.expires_at)
    except (OperationalError, InterfaceError):
        _away(declaration, call, send)
        return None
    return _run(declaration, call, run_id, key, send)


def _misfired(declaration: Declaration, call: Call) -> bool:
    """Whether its time has passed so long ago that the next one has come."""
    if declaration.misfire != "skip" or declaration.schedule is None:
        return False
    return clock.now() - call.sent_at >= declaration.schedule.interval


def _wait(declaration: Declaration, call: Call, busy: leases.Busy, send: Send) -> None:
    if declaration.misfire == "skip":
        logger.info("job_skipped", job=declaration.name, code="lease_held")
    else:
        send(call, busy.seconds + 1)


def _stood_for(key: str, call: Call) -> bool:
    """Whether a run that began after this call was sent has done its work: calls in the queue are one run."""
    return JobRun.objects.filter(
        lease_key=key, outcome=Outcome.SUCCEEDED, started_at__gt=call.sent_at + CLOCK_SKEW
    ).exists()


def _begin(declaration: Declaration, call: Call, run_id: UUID, key: str, expires_at: datetime) -> None:
    now = clock.now()
    JobRun.objects.create(
        id=run_id,
        name=declaration.name,
        lease_key=key,
        arguments=call.arguments,
        attempt=call.attempt,
        process_id=heartbeats.process_id(),
        asked_at=call.sent_at,
        started_at=now,
        lease_expires_at=expires_at,
    )
    Job.objects.update_or_create(
        name=declaration.name,
        defaults={"last_started_at": now},
        create_defaults={"last_started_at": now, "known_since": now},
    )


def _run(declaration: Declaration, call: Call, run_id: UUID, key: str, send: Send) -> Counts:
    error: Exception | None = None
    counts: Counts = None
    with (
        structlog.contextvars.bound_contextvars(job=declaration.name, run_id=str(run_id)),
        tracer.start_as_current_span(f"job {declaration.name}", record_exception=False),
    ):
        try:
            counts = declaration.function(*from_wire(call.arguments))
        except Exception as raised:
            error = raised
        delay = declaration.retry.delay_after(error, call.attempt) if error else None
        try:
            _finish(declaration, run_id, key, counts, error, final=delay is None)
        except (OperationalError, InterfaceError):
            _away(declaration, call, send)
            return None
        if error is None:
            return counts
        if delay is not None:
            send(call.again(), delay)
        raise JobFailed(f"{declaration.name}: {code_of(error)}") from error


def _finish(
    declaration: Declaration,
    run_id: UUID,
    key: str,
    counts: Counts,
    error: Exception | None,
    *,
    final: bool,
) -> None:
    now = clock.now()
    code = code_of(error) if error else ""
    JobRun.objects.filter(pk=run_id, outcome=Outcome.RUNNING).update(
        outcome=Outcome.FAILED if error else Outcome.SUCCEEDED,
        finished_at=now,
        code=code,
        counts={name: int(count) for name, count in (counts or {}).items()},
    )
    if error is None:
        Job.objects.filter(name=declaration.name).update(last_success_at=now, consecutive_failures=0)
        alarms.resolve(source=declaration.name, reasons=(FAILED, LOST, HoldCheckFailed.code))
        logger.info("job_succeeded", count=sum((counts or {}).values()))
    else:
        _note_failure(declaration.name, code, now)
        logger.error("job_failed", code=code, attempt=None if final else "again")
        if final and code == HoldCheckFailed.code:
            alarm_failed_check(declaration.name)
        elif final:
            alarms.raise_alarm(source=declaration.name, reason=FAILED, details={"code": code})
    leases.release(key, run_id)


def _note_failure(name: str, code: str, at: datetime) -> None:
    Job.objects.filter(name=name).update(
        last_failure_at=at, last_failure_code=code, consecutive_failures=F("consecutive_failures") + 1
    )


def _away(declaration: Declaration, call: Call, send: Send) -> None:
    """The database does not answer: the call waits in the broker, or goes where its schedule brings the next."""
    logger.error("job_waits_for_database", job=declaration.name)
    with suppress(DatabaseError):
        connection.close()
    if declaration.misfire == "run_once":
        send(call, DATABASE_AWAY_SECONDS)


def code_of(error: Exception) -> str:
    """What may be said of an exception: its class, or the code it carries; never its message."""
    if isinstance(error, SoftTimeLimitExceeded):
        return SOFT_LIMIT
    code = getattr(error, "code", None)
    return code if isinstance(code, str) and CODE.fullmatch(code) else type(error).__name__[:100]


def sweep_lost(send: Callable[[Declaration, Call], None]) -> int:
    """End the runs whose process died or was killed, free their leases, and send what must not be missed.

    Returns how many were lost. A run that was lost too often alarms and is not sent again.
    """
    now, live, lost = clock.now(), live_process_ids(), 0
    for run in JobRun.objects.filter(outcome=Outcome.RUNNING):
        dead = run.process_id is not None and run.process_id not in live and run.started_at < now - GRACE
        if not dead and run.lease_expires_at > now:
            continue
        ended = JobRun.objects.filter(pk=run.pk, outcome=Outcome.RUNNING).update(
            outcome=Outcome.LOST, finished_at=now, code=LOST
        )
        if not ended:
            continue
        lost += 1
        leases.release(run.lease_key, run.pk)
        _note_failure(run.name, LOST, now)
        _send_lost(run, send)
    return lost


def _send_lost(run: JobRun, send: Callable[[Declaration, Call], None]) -> None:
    declaration = find(run.name)
    if declaration is None or declaration.misfire != "run_once":
        return
    if run.attempt + 1 >= MOST_LOST_ATTEMPTS:
        alarms.raise_alarm(source=run.name, reason=LOST, details={"attempts": run.attempt + 1})
        return
    send(declaration, Call(run.arguments, run.asked_at, run.attempt + 1))
