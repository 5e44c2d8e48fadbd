"""Declares background tasks.

    @task(name="traces.expire", schedule=every(hours=1), lease=timedelta(minutes=15),
          soft_limit=timedelta(minutes=11), misfire="run_once")
    def expire() -> dict[str, int]:
        ...

A task returns counts, or nothing. Its arguments are ids and numbers, positional, and arrive as UUIDs; text is
refused where it is sent. It must be safe to run twice: a message may arrive again after its worker died.
The function opens its own session; `expire.function(...)` calls it without the bookkeeping.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, ClassVar

import structlog
from celery import Task, shared_task

from apps.core import clock
from apps.operations import declarations, runs
from apps.operations.declarations import NO_RETRY, Counts, Declaration, Misfire, Retry
from apps.operations.schedules import Schedule, daily, every

__all__ = ["Retry", "daily", "every", "send_call", "task"]

SENT_AT = "memory_sent_at"
ATTEMPT = "memory_attempt"
REQUEST_ID = "memory_request_id"
REQUEST_FIELD = "request_id"
HARD_MARGIN = timedelta(seconds=30)


class PlatformTask(Task):
    """Checks the arguments where a message is made, and notes when it was first sent."""

    abstract = True
    declaration: ClassVar[Declaration]

    @property
    def function(self) -> Callable[..., Counts]:
        return self.declaration.function

    def apply_async(self, args: Any = None, kwargs: Any = None, *more: Any, **options: Any) -> Any:
        if kwargs:
            raise declarations.TextInArguments("arguments of a task are positional")
        headers = {SENT_AT: clock.now().isoformat(), ATTEMPT: "0"} | (options.pop("headers", None) or {})
        request_id = structlog.contextvars.get_contextvars().get(REQUEST_FIELD)
        if request_id:
            headers.setdefault(REQUEST_ID, request_id)
        wire = tuple(declarations.wire_arguments(args or ()))
        return super().apply_async(wire, {}, *more, headers=headers, **options)

    def sent_headers(self) -> dict[str, Any]:
        # A worker merges a message's headers into the request; an eager call keeps them apart.
        return {**(self.request.headers or {}), **vars(self.request)}

    def call(self, arguments: tuple[Any, ...]) -> runs.Call:
        """The message that is being worked on."""
        headers = self.sent_headers()
        sent_at = headers.get(SENT_AT)
        return runs.Call(
            declarations.wire_arguments(arguments),
            datetime.fromisoformat(sent_at) if sent_at else clock.now(),
            int(headers.get(ATTEMPT) or 0),
        )


def task(
    *,
    name: str,
    lease: timedelta,
    soft_limit: timedelta,
    misfire: Misfire,
    schedule: Schedule | None = None,
    hard_limit: timedelta | None = None,
    retry: Retry = NO_RETRY,
    freshness: timedelta | None = None,
) -> Callable[[Callable[..., Counts]], PlatformTask]:
    """Declare a task.

    lease: how long a run may hold off others with the same arguments; longer than the hard limit.
    soft_limit: raises SoftTimeLimitExceeded inside; hard_limit (30 s later when not given) kills the process.
    misfire: what happens to a run that could not start in time: `skip` it, or `run_once` for all that were missed.
    freshness: age of the last success that raises an alarm; twice the schedule's interval when not given.
    """

    def declare(function: Callable[..., Counts]) -> PlatformTask:
        declaration = Declaration(
            name=name,
            function=function,
            schedule=schedule,
            lease=lease,
            soft_limit=soft_limit,
            hard_limit=hard_limit or soft_limit + HARD_MARGIN,
            misfire=misfire,
            retry=retry,
            freshness=freshness or (schedule.interval * declarations.MISSED_RUNS if schedule else None),
            description=(function.__doc__ or "").strip().partition("\n")[0],
        )
        declarations.add(declaration)

        def run(self: PlatformTask, *arguments: Any) -> Counts:
            # What a request set off carries the request's id in its log lines and audit entries.
            request_id = self.sent_headers().get(REQUEST_ID)
            with structlog.contextvars.bound_contextvars(**{REQUEST_FIELD: request_id} if request_id else {}):
                return runs.perform(
                    declaration,
                    self.call(arguments),
                    lambda call, seconds: send_call(declaration, call, seconds),
                )

        run.__module__, run.__qualname__ = function.__module__, function.__qualname__
        run.__doc__ = function.__doc__
        made: PlatformTask = shared_task(
            bind=True,
            name=name,
            base=PlatformTask,
            declaration=declaration,
            soft_time_limit=int(declaration.soft_limit.total_seconds()),
            time_limit=int(declaration.hard_limit.total_seconds()),
        )(run)
        return made

    return declare


def send_call(declaration: Declaration, call: runs.Call, seconds: float = 0) -> None:
    """Send a call again, as the one it was."""
    from celery import current_app

    current_app.tasks[declaration.name].apply_async(
        tuple(call.arguments),
        countdown=seconds,
        headers={SENT_AT: call.sent_at.isoformat(), ATTEMPT: str(call.attempt)},
    )
