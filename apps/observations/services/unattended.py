"""What must happen to runs without a person: one that is not sound is switched off, and what is due alarms.

Outside of sessions. Upkeep is left alone: what was written keeps its deadlines and is deleted by them.
"""

import json
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from django.db import connection

from apps.core import audit, clock
from apps.core.db.sessions import maintenance_session
from apps.core.ids import uuid7
from apps.core.policies import policy_hash
from apps.observations.activation.bindings import bindings
from apps.observations.activation.checklist import standing
from apps.observations.activation.items import ITEMS
from apps.observations.fences import fence
from apps.observations.models import ActivationRun
from apps.observations.policy import KIND
from apps.observations.standing import known
from apps.operations import alarms
from apps.operations.models import Alarm

ALARM_SOURCE = "observations.activation"
FAILED, UNPROVEN = "pilot_failed", "pilot_unproven"
DUE_SOURCE = "observations.due_dates"
COPIES, STALE = "copies_overdue", "evidence_stale"


def stop_unsafe() -> int:
    """Switch off, behind the fence, every run of which a C failed, or that was enabled 24 hours ago and has not passed
    C2 and C3. How many; each is an alarm."""
    stopped: list[tuple[UUID, str]] = []
    for run, *_ in _to_stop():
        with maintenance_session():
            fence()
            # Read again behind the fence: a person may have stopped it, or a policy may have followed.
            found = {row[0]: row for row in _to_stop_now()}
            if run not in found:
                continue
            _, workspace, cause, _, document = found[run]
            off = json.loads(document) | {"mode": "off"}
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT observations_stop_run(%s, %s, %s, %s)",
                    [run, uuid7(), json.dumps(off), policy_hash(KIND, off)],
                )
            details = {"state": "stopping", "cause": cause}
            label = ActivationRun._meta.label_lower
            audit.record("observations.activation_stop", label, run, workspace=workspace, details=details)
            stopped.append((workspace, cause))
    if stopped:
        known.forget()
    for workspace, cause in stopped:
        alarms.raise_alarm(source=ALARM_SOURCE, reason=cause, workspace=workspace)
    return len(stopped)


def look_at_due_dates() -> dict[str, int]:
    """Alarm on exported copies past their deadline whose deletion nobody attested, and on evidence that grew stale
    under a run that is ready or on. How many of each."""
    now, moment = bindings(), clock.now()
    with maintenance_session():
        copies = dict(_rows("SELECT workspace, copies FROM observations_overdue_copies()"))
        evidence = _named("SELECT * FROM observations_evidence_in_force()")
    stale = Counter(row["workspace"] for row in evidence if _is_stale(row, now, moment))
    alarmed = Alarm.objects.filter(source=DUE_SOURCE, resolved_at=None).values_list("workspace_id", flat=True)
    for workspace in {*copies, *stale, *alarmed}:
        counts = {COPIES: copies.get(workspace, 0), STALE: stale[workspace]}
        readings = {reason: {"count": count} for reason, count in counts.items() if count}
        alarms.settle(source=DUE_SOURCE, readings=readings, workspace=workspace)
    return {COPIES: sum(copies.values()), STALE: stale.total()}


def _is_stale(row: Mapping[str, Any], now: Any, moment: datetime) -> bool:
    item = ITEMS[row["item"]]
    if item.group not in "AB" or item.by_minutes:
        return False
    return standing(item, SimpleNamespace(**row), now, moment) == "stale"


def _to_stop() -> list[tuple[Any, ...]]:
    with maintenance_session():
        return _to_stop_now()


def _to_stop_now() -> list[tuple[Any, ...]]:
    return _rows("SELECT run, workspace, cause, version, document FROM observations_runs_to_stop()")


def _rows(sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def _named(sql: str) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
