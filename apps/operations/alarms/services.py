"""Opening, repeating, acknowledging and resolving alarms; each notice becomes deliveries in the same transaction."""

import json
import re
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Q, QuerySet

from apps.core import audit, clock
from apps.core.db.sessions import current, current_staff
from apps.core.ids import uuid7
from apps.core.problems import NotFound
from apps.core.reasons import check_reason
from apps.operations.alarms import notices
from apps.operations.models import Alarm
from apps.operations.models.alarms import Notice

Details = Mapping[str, Any]

REPEAT_AFTER = timedelta(hours=4)
CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+-]{0,139}")
LONGEST_REASON = 500


def checked_details(details: Details | None) -> dict[str, Any]:
    """Numbers, booleans, null and codes. Raises TypeError for text, without showing it."""
    checked = dict(details or {})
    for value in checked.values():
        number = value is None or isinstance(value, (bool, int, float))
        if not number and not (isinstance(value, str) and CODE.fullmatch(value)):
            raise TypeError("details of an alarm are numbers and codes")
    return checked


def raise_alarm(
    *, source: str, reason: str, details: Details | None = None, workspace: UUID | None = None
) -> None:
    """Open the alarm, or note that it is still seen."""
    checked = checked_details(details)
    _outside_of_sessions(lambda: _raise(source, reason, checked, workspace))


def resolve(*, source: str, reasons: Collection[str] | None = None, workspace: UUID | None = None) -> None:
    """Close the source's open alarms of these reasons (None: of all), with a notice."""
    _outside_of_sessions(lambda: _resolve(source, reasons, workspace))


def settle(*, source: str, readings: Mapping[str, Details], workspace: UUID | None = None) -> None:
    """One whole reading of a source: its reasons are raised, every other open one of it is closed."""
    for reason, details in readings.items():
        raise_alarm(source=source, reason=reason, details=details, workspace=workspace)

    def close_others() -> None:
        found = _open(source, workspace).values_list("reason", flat=True)
        _resolve(source, [reason for reason in found if reason not in readings], workspace)

    _outside_of_sessions(close_others)


def acknowledge(*, alarm_id: UUID, reason: str) -> Alarm:
    """A human has taken it up: no more repeats. In a staff session with `operate_collection`."""
    staff = current_staff()
    check_reason(reason, longest=LONGEST_REASON)
    with transaction.atomic():
        alarm = Alarm.objects.select_for_update().filter(pk=alarm_id).first()
        if alarm is None:
            raise NotFound(code="unknown_alarm")
        alarm.acknowledged_at, alarm.acknowledged_by_id = clock.now(), staff.user_id
        alarm.acknowledge_reason = reason
        alarm.save(update_fields=["acknowledged_at", "acknowledged_by", "acknowledge_reason"])
        audit.record(
            "operations.acknowledge_alarm",
            "operations.alarm",
            alarm.pk,
            workspace=alarm.workspace_id,
            reason=reason,
            details={"source": alarm.source, "code": alarm.reason},
        )
    return alarm


def repeat_unacknowledged() -> int:
    """Send another notice of each open alarm that nobody has taken up for four hours. Returns how many."""
    due = Alarm.objects.filter(
        resolved_at=None, acknowledged_at=None, last_notice_at__lte=clock.now() - REPEAT_AFTER
    )
    for alarm in due:
        with transaction.atomic():
            notices.send(alarm, Notice.REPEATED)
    return len(due)


def _open(source: str, workspace: UUID | None) -> QuerySet[Alarm]:
    mine = Q(workspace=None) if workspace is None else Q(workspace_id=workspace)
    return Alarm.objects.filter(mine, source=source, resolved_at=None)


# Rows of alarms are written as the process itself, which inside a session it is not.
def _outside_of_sessions(act: Callable[[], None]) -> None:
    if current() is None:
        act()
    else:
        transaction.on_commit(act)


RAISE = """
  INSERT INTO operations_alarm (id, workspace_id, source, reason, details, opened_at, last_seen_at, times_seen,
                                acknowledge_reason)
  VALUES (%(id)s, %(workspace)s, %(source)s, %(reason)s, %(details)s, %(now)s, %(now)s, 1, '')
  ON CONFLICT (workspace_id, source, reason) WHERE resolved_at IS NULL
  DO UPDATE SET last_seen_at = excluded.last_seen_at, details = excluded.details,
                times_seen = operations_alarm.times_seen + 1
  RETURNING id
"""


def _raise(source: str, reason: str, details: dict[str, Any], workspace: UUID | None) -> None:
    new = uuid7()
    values = {
        "id": new,
        "workspace": workspace,
        "source": source,
        "reason": reason,
        "details": json.dumps(details),
        "now": clock.now(),
    }
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(RAISE, values)
        if cursor.fetchone()[0] == new:
            notices.send(Alarm.objects.get(pk=new), Notice.OPENED)


def _resolve(source: str, reasons: Collection[str] | None, workspace: UUID | None) -> None:
    if reasons is not None and not reasons:
        return
    with transaction.atomic():
        found = _open(source, workspace).select_for_update()
        if reasons is not None:
            found = found.filter(reason__in=reasons)
        for alarm in found:
            alarm.resolved_at = clock.now()
            alarm.save(update_fields=["resolved_at"])
            notices.send(alarm, Notice.RESOLVED)
