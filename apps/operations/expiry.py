"""Draining due rows: the one function that deletes what has outlived its term.

The law: the cut-off is fixed once, by the database's clock, so that a drain ends under steady arrivals; every
batch is its own transaction and stays when a later one fails; the success is written in the deleting
transaction, so that a rolled-back batch leaves none; whatever policies or switches say, it runs; a failure is
counted, raised and alarmed, never swallowed.

An app registers a kind and its two functions in PostgreSQL:

    expiry.register(expiry.Expiry("traces", interval=timedelta(hours=1)))

- `traces_expire(batch int, cutoff timestamptz)`, executable by memory_maintenance alone: deletes up to `batch`
  due rows of each sort and returns one row of counts (0 in all: drained). It clamps the cut-off to
  `statement_timestamp()`. A count named `failed` (batches that it could not delete) is no progress.
- `traces_status()`, executable by memory_monitor alone: one row. Columns `expired_<what>` count overdue rows,
  `oldest_overdue_seconds` is the age of the oldest; `alarm_reasons text[]` may add reasons of the app's own.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import DatabaseError, connection
from django.db.backends.utils import CursorWrapper
from psycopg import errors, sql

from apps.core.db.sessions import maintenance_session, monitor_session
from apps.operations.holds import HoldCheckFailed, is_failed_check

logger = structlog.get_logger(__name__)

LEAST_BATCH = 50
FAILED_COUNT = "failed"
NEVER_SUCCEEDED = "never_succeeded"
STALE_RUNS = 2
MOST_AHEAD_SECONDS = 60.0
MOST_FAILURES = 2


class ExpiryFailed(RuntimeError):
    """A drain did not do all that it should. `code` says why; committed batches stay."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True)
class Expiry:
    """One registered kind. `interval`: how often its task drains it; `group`: which task that is.

    overdue_grace: how long rows may be overdue before it is an alarm: one interval passes between two runs.
    expire: in place of the function in PostgreSQL, for what needs more than batch and cut-off; called with both
    in the maintenance session of the batch, returns the counts.
    """

    name: str
    interval: timedelta
    function: str = ""
    status_function: str | None = ""
    batch: int = 1000
    statement_timeout: timedelta = timedelta(seconds=120)
    lock_timeout: timedelta = timedelta(seconds=5)
    budget: timedelta = timedelta(seconds=600)
    group: str = ""
    overdue_grace: timedelta | None = None
    expire: Callable[[int, datetime], Mapping[str, int]] | None = field(default=None)
    failed: Callable[[str], None] | None = field(default=None)
    drained: Callable[[], None] | None = field(default=None)

    @property
    def expire_function(self) -> str:
        return self.function or f"{self.name}_expire"

    @property
    def status(self) -> str | None:
        """The status function's name; None for a kind that has none (pruning)."""
        return None if self.status_function is None else self.status_function or f"{self.name}_status"

    @property
    def grace_seconds(self) -> float:
        return (self.overdue_grace or self.interval + self.budget).total_seconds()


@dataclass(slots=True)
class Drained:
    """What a drain did. `drained`: nothing due was left at its cut-off (but for what failed or was locked)."""

    cutoff: datetime
    counts: dict[str, int] = field(default_factory=dict)
    batches: int = 0
    batch: int = 0
    drained: bool = False
    timeout: timedelta | None = None

    def add(self, counts: dict[str, int]) -> None:
        self.batches += 1
        for name, count in counts.items():
            # What failed fails again in every batch: the most, not the sum.
            known = self.counts.get(name, 0)
            self.counts[name] = max(known, count) if name == FAILED_COUNT else known + count


_registered: dict[str, Expiry] = {}


def register(kind: Expiry) -> None:
    _registered[kind.name] = kind


def unregister(name: str) -> None:
    """For tests that register kinds of their own."""
    _registered.pop(name, None)


def registered(group: str | None = None) -> list[Expiry]:
    """All kinds by name, or those of one group."""
    kinds = sorted(_registered.values(), key=lambda kind: kind.name)
    return kinds if group is None else [kind for kind in kinds if kind.group == group]


def drain(name: str) -> Drained:
    """Delete what is due now, batch after batch. Raises ExpiryFailed; what was committed stays.

    Outside of any session: each batch opens its own.
    """
    kind = _registered[name]
    state = Drained(cutoff=_database_now(), batch=kind.batch)
    try:
        _drain(kind, state)
        if state.counts.get(FAILED_COUNT):
            raise ExpiryFailed("batch_failed")
    except ExpiryFailed as failure:
        _note_failure(kind, failure.code)
        logger.error("expiry_failed", source=name, code=failure.code, count=sum(state.counts.values()))
        raise
    if state.drained and kind.drained is not None:
        kind.drained()
    return state


def drain_group(group: str) -> dict[str, int]:
    """Drain every kind of a group; rows by kind. One that fails leaves the others done, and is raised then; before
    others one that could not ask about holds."""
    counts: dict[str, int] = {}
    failures: list[ExpiryFailed] = []
    for kind in registered(group):
        try:
            counts[kind.name] = sum(drain(kind.name).counts.values())
        except ExpiryFailed as failure:
            failures.append(failure)
    if failures:
        raise min(failures, key=lambda failure: failure.code != HoldCheckFailed.code)
    return counts


def _drain(kind: Expiry, state: Drained) -> None:
    until = time.monotonic() + kind.budget.total_seconds()
    while not state.drained:
        state.timeout = _timeout(kind, state, until)
        try:
            counts = _one_batch(kind, state)
        except DatabaseError as error:
            state.batch = _smaller_batch(error, state.batch)
        except HoldCheckFailed as refused:
            raise ExpiryFailed(refused.code) from None
        else:
            state.add(counts)
            state.drained = not _progress(counts)
        if time.monotonic() >= until:
            return


def _timeout(kind: Expiry, state: Drained, until: float) -> timedelta:
    """Of the next batch. Until one has been committed, at most a quarter of what is left of the budget: otherwise
    timeouts alone would use it up, run after run, and nothing would ever go."""
    if state.batches:
        return kind.statement_timeout
    return min(kind.statement_timeout, timedelta(seconds=max(0.0, until - time.monotonic()) / 4))


def _progress(counts: dict[str, int]) -> int:
    return sum(count for name, count in counts.items() if name != FAILED_COUNT)


def _smaller_batch(error: DatabaseError, batch: int) -> int:
    """Half of it after a statement timeout. Raises ExpiryFailed for every other error, and below the least."""
    cause = error.__cause__
    if isinstance(cause, errors.QueryCanceled) and batch > LEAST_BATCH:
        return max(LEAST_BATCH, batch // 2)
    if is_failed_check(error):
        raise ExpiryFailed(HoldCheckFailed.code) from error
    code = getattr(cause, "sqlstate", None)
    raise ExpiryFailed(f"sqlstate_{code}" if code else type(error).__name__) from error


def _one_batch(kind: Expiry, state: Drained) -> dict[str, int]:
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('statement_timeout', %s, true), set_config('lock_timeout', %s, true)",
            [_milliseconds(state.timeout or kind.statement_timeout), _milliseconds(kind.lock_timeout)],
        )
        if kind.expire is not None:
            counts = dict(kind.expire(state.batch, state.cutoff))
        else:
            counts = _call(cursor, kind.expire_function, [state.batch, state.cutoff])
        done = _progress(counts)
        cursor.execute("SELECT operations_expiry_moved(%s, %s, %s)", [kind.name, done, not done])
    return counts


def _call(cursor: CursorWrapper, function: str, parameters: list[Any]) -> dict[str, int]:
    """The one row of counts that a function returns, by column; a function of one number has one column."""
    marks = sql.SQL(", ").join(sql.Placeholder() * len(parameters))
    cursor.execute(
        sql.SQL("SELECT * FROM {}({})").format(sql.Identifier(function), marks).as_string(None), parameters
    )
    names = [column[0] for column in cursor.description]
    row = cursor.fetchone()
    return {name: int(value or 0) for name, value in zip(names, row, strict=True)}


def _milliseconds(given: timedelta) -> str:
    return str(max(1, round(given.total_seconds() * 1000)))


def _database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        return cursor.fetchone()[0]  # type: ignore[no-any-return]


def _note_failure(kind: Expiry, code: str) -> None:
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute("SELECT operations_expiry_failed(%s, %s)", [kind.name, code])
    if kind.failed is not None:
        kind.failed(code)


@dataclass(frozen=True, slots=True)
class Status:
    """How a kind stands. `reasons` are codes; any reason is an alarm.

    `values` hold the columns of the state and of the app's status function.
    """

    name: str
    values: dict[str, Any]
    reasons: tuple[str, ...]
    grace_seconds: float
    may_be_new: bool = False

    @property
    def oldest_overdue_seconds(self) -> float:
        return float(self.values.get("oldest_overdue_seconds") or 0)

    def urgent(self) -> tuple[str, ...]:
        """The reasons without what the next run may still settle: young backlogs, a kind as good as new."""
        young = self.oldest_overdue_seconds < self.grace_seconds
        return tuple(
            reason
            for reason in self.reasons
            if not (young and reason.startswith("expired_"))
            and not (self.may_be_new and reason == NEVER_SUCCEEDED)
        )


def note_known(name: str) -> None:
    """Remember since when the kind is registered, so that a new one is not yet late."""
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute("SELECT operations_expiry_known(%s)", [name])


def status(name: str) -> Status:
    """Read by the monitor's functions, which no row policy hides anything from. Raises what the database does."""
    kind = _registered[name]
    with monitor_session(), connection.cursor() as cursor:
        cursor.execute("SELECT * FROM operations_expiry_state(%s)", [name])
        values = _row(cursor)
        if kind.status is not None:
            cursor.execute(sql.SQL("SELECT * FROM {}()").format(sql.Identifier(kind.status)).as_string(None))
            values |= _row(cursor)
    known = values["known_since"]
    may_be_new = known is None or values["checked_at"] - known < STALE_RUNS * kind.interval
    return Status(name, values, _reasons(kind, values), kind.grace_seconds, may_be_new)


def _row(cursor: CursorWrapper) -> dict[str, Any]:
    names = [column[0] for column in cursor.description]
    return dict(zip(names, cursor.fetchone(), strict=True))


def _reasons(kind: Expiry, values: dict[str, Any]) -> tuple[str, ...]:
    age = values.get("seconds_since_success")
    found = list(values.get("alarm_reasons") or ())
    if age is None:
        found.append(NEVER_SUCCEEDED)
    elif age >= STALE_RUNS * kind.interval.total_seconds():
        found.append("success_stale")
    elif age < -MOST_AHEAD_SECONDS:
        found.append("success_in_future")
    found += [name for name, value in values.items() if name.startswith("expired_") and value]
    if values["consecutive_failures"] >= MOST_FAILURES:
        found.append("failing")
    return tuple(dict.fromkeys(found))
