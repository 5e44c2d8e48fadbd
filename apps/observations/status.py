"""How the journal's upkeep stands, read by functions that no row policy hides a backlog from.

A zero that an ordinary role reads proves nothing, so this is read as `memory_monitor` alone. Apps with a backlog of
their own (copies of records) register a function of the same contract, and every reading merges them:

    status.register("curation_pool_status")

Such a function returns one row: `expired_<what>` counts, `oldest_overdue_seconds`, and `alarm_reasons text[]`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from psycopg import sql

from apps.core import clock
from apps.core.db.sessions import monitor_session

FUNCTION = "observations_status"
COLUMNS = (
    "checked_at",
    "last_success_at",
    "seconds_since_success",
    "last_drained_at",
    "expired_records",
    "expired_texts",
    "oldest_overdue_seconds",
    "consecutive_failures",
    "alarm",
    "alarm_reasons",
)
LIMIT_MS = 5000
FRESH_OVERDUE_SECONDS = 1200.0
"""Up to here overdue rows may be what the next run deletes."""

OK, YOUNG, ALARM, UNKNOWN = 0, 1, 2, 3
"""Exit codes. Every one but the first is an alarm; the second may be delayed by one interval."""

_functions: dict[str, None] = {}


class Unreadable(RuntimeError):
    """The status functions did not answer with what they promise."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The merged columns. Any reason is an alarm."""

    values: Mapping[str, Any]

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(self.values["alarm_reasons"])

    @property
    def alarm(self) -> bool:
        return bool(self.reasons)

    @property
    def young(self) -> bool:
        """Whether all there is are overdue rows that the next run may settle."""
        overdue = all(reason.startswith("expired_") for reason in self.reasons)
        return overdue and float(self.values["oldest_overdue_seconds"]) < FRESH_OVERDUE_SECONDS

    def document(self) -> dict[str, Any]:
        """As JSON: numbers, times and codes alone."""
        shown = {
            name: clock.iso(value) if isinstance(value, datetime) else value
            for name, value in self.values.items()
        }
        return {"status": "alarm" if self.alarm else "ok"} | shown

    def exit_code(self, *, strict: bool = False) -> int:
        if not self.alarm:
            return OK
        return YOUNG if self.young and not strict else ALARM


def register(function: str) -> None:
    """Have every reading merge this function's row."""
    _functions[function] = None


def unregister(function: str) -> None:
    """For tests that register functions of their own."""
    _functions.pop(function, None)


def read() -> Reading:
    """In a monitor session of its own, within 5 s. Raises what the database does, Unreadable."""
    with monitor_session(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(LIMIT_MS)])
        return read_with(cursor)


def read_with(cursor: Any) -> Reading:
    """With a cursor of somebody who may run the functions. Raises what the database does, Unreadable."""
    found = _row(cursor, FUNCTION)
    if not set(COLUMNS) <= found.keys():
        raise Unreadable
    for function in _functions:
        found = _merged(found, _row(cursor, function))
    return Reading(found | {"alarm": bool(found["alarm_reasons"])})


def _row(cursor: Any, function: str) -> dict[str, Any]:
    cursor.execute(sql.SQL("SELECT * FROM {}()").format(sql.Identifier(function)).as_string(None))
    row = cursor.fetchone()
    if row is None:
        raise Unreadable
    return dict(zip([column[0] for column in cursor.description], row, strict=True))


def _merged(journal: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    counts = {name: value for name, value in other.items() if name.startswith("expired_")}
    overdue = [float(row.get("oldest_overdue_seconds") or 0) for row in (journal, other)]
    reasons = [*journal["alarm_reasons"], *(other.get("alarm_reasons") or ())]
    reasons += [name for name, value in counts.items() if value]
    return (
        journal
        | counts
        | {"oldest_overdue_seconds": max(overdue), "alarm_reasons": list(dict.fromkeys(reasons))}
    )
