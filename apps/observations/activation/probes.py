"""What the machine can decide here: each probe looks for itself, outside of any session, and answers in numbers."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor

from apps.core import clock
from apps.core.db.sessions import UnknownPrincipal, staff_session
from apps.core.db.verify import differences
from apps.observations import gate, status
from apps.observations.activation.pilots import (
    HARMLESS,
    Asked,
    Found,
    forged,
    pilot_row,
    store_nothing,
    unlisted,
)
from apps.observations.constants import POLICY_SECONDS
from apps.observations.fingerprints import is_linkable
from apps.operations.declarations import find
from apps.operations.models import Job, JobRun, Process
from apps.operations.models.jobs import Outcome
from apps.operations.models.processes import ProcessKind
from apps.operations.selectors import live_processes

__all__ = ["HARMLESS", "PROBES", "Asked", "Found", "look"]

VERSION = 2
LEAST_SERVER = 150000
EXPIRE = "observations.expire"
FRESH = timedelta(minutes=30)
CACHED = timedelta(seconds=POLICY_SECONDS)
"""What a process read before the stop was committed may rule it for so long."""


def look(item: str, asked: Asked) -> Found:
    """Run the probe of an item. What cannot be read has failed."""
    try:
        return PROBES[item](asked)
    except (DatabaseError, InterfaceError, status.Unreadable, UnknownPrincipal):
        return Found(False, {"readable": False})


def migrations(asked: Asked) -> Found:
    executor = MigrationExecutor(connection)
    pending = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    unknown = len(executor.loader.applied_migrations.keys() - executor.loader.disk_migrations.keys())
    values = {"pending": pending, "unknown": unknown, "applied": len(executor.loader.applied_migrations)}
    return Found(not pending and not unknown, values)


def database(asked: Asked) -> Found:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('server_version_num')::int, pg_get_userbyid(datdba) = session_user "
            "FROM pg_database WHERE datname = current_database()"
        )
        version, owned = cursor.fetchone()
    opened = gate.is_open()
    values = {"server_version": version, "login_owns": owned, "identity_known": opened}
    return Found(version >= LEAST_SERVER and not owned and opened, values)


def roles(asked: Asked) -> Found:
    count = len(differences())
    return Found(count == 0, {"differences": count})


def processes(asked: Asked) -> Found:
    """Every live process is of this release and has the mode off, and there is one of each kind."""
    live = list(live_processes())
    workspace = asked.run.workspace_id
    values = {
        "live": len(live),
        "kinds_missing": len(set(ProcessKind.values) - {process.kind for process in live}),
        "other_release": sum(process.release != settings.RELEASE for process in live),
        "mode_on": sum(_mode(process, workspace) != "off" for process in live),
    }
    sound = bool(settings.RELEASE) and not any(values[name] for name in values if name != "live")
    return Found(sound, values)


def cleanup(asked: Asked) -> Found:
    """A run of the schedule has ended well, and it moved the heartbeat of upkeep."""
    ran = (
        JobRun.objects.filter(name=EXPIRE, outcome=Outcome.SUCCEEDED, finished_at__isnull=False)
        .order_by("-started_at")
        .first()
    )
    moved = status.read().values["last_success_at"]
    age = (clock.now() - ran.finished_at).total_seconds() if ran and ran.finished_at else None
    beat = bool(ran and moved is not None and moved >= ran.started_at)
    return Found(
        beat and age is not None and age < FRESH.total_seconds(), {"age_seconds": age, "moved": beat}
    )


def backlog(asked: Asked) -> Found:
    reading = status.read().values
    values = {name: reading[name] for name in reading if name.startswith("expired_")}
    values["oldest_overdue_seconds"] = float(reading["oldest_overdue_seconds"] or 0)
    return Found(not any(values.values()), values)


def schedule(asked: Asked) -> Found:
    declared = find(EXPIRE)
    job = Job.objects.filter(pk=EXPIRE).first()
    last = job.last_success_at if job else None
    age = (clock.now() - last).total_seconds() if last else None
    registered = declared is not None and declared.schedule is not None
    return Found(
        registered and age is not None and age < FRESH.total_seconds(),
        {"registered": registered, "age_seconds": age},
    )


def followed(asked: Asked) -> Found:
    """The stop held the fence, so that no admitted write was open. Every live process has written its heartbeat since,
    and none knows another generation or a mode on."""
    run = asked.run
    live = list(live_processes())
    values = {
        "fence": run.fenced,
        "live": len(live),
        "not_reported": sum(
            run.stopped_at is None or process.seen_at <= run.stopped_at + CACHED for process in live
        ),
        "other_generation": sum(
            _known(process, run.workspace_id).get("generation", run.stopped_generation)
            != run.stopped_generation
            for process in live
        ),
        "mode_on": sum(_mode(process, run.workspace_id) != "off" for process in live),
    }
    behind = any(values[name] for name in ("not_reported", "other_generation", "mode_on"))
    return Found(run.fenced and not behind, values)


def drained(asked: Asked) -> Found:
    """As `followed`, and only then searches of those who take part store nothing."""
    first = followed(asked)
    if not first.passed:
        return first
    fresh = store_nothing(asked)
    return Found(fresh.passed, {**first.values, **fresh.values})


def kept(asked: Asked) -> Found:
    """Upkeep goes on: its schedule ran, the roles are whole, and the keys of what is left are there."""
    ran, whole = schedule(asked), roles(asked)
    with staff_session(asked.user_id), connection.cursor() as cursor:
        cursor.execute("SELECT key_ids FROM observations_left(%s)", [asked.run.workspace_id])
        (key_ids,) = cursor.fetchone()
    lost = sum(not is_linkable(key_id) for key_id in key_ids)
    return Found(
        ran.passed and whole.passed and not lost,
        {**ran.values, "role_differences": whole.values["differences"], "keys_missing": lost},
    )


def empty(asked: Asked) -> Found:
    with staff_session(asked.user_id), connection.cursor() as cursor:
        cursor.execute("SELECT observations_remaining(%s)", [asked.run.workspace_id])
        (count,) = cursor.fetchone()
    return Found(count == 0, {"records": count})


PROBES: dict[str, Callable[[Asked], Found]] = {
    "A2": migrations,
    "A3": database,
    "A4": roles,
    "B1": processes,
    "B4": cleanup,
    "B5": backlog,
    "B6": schedule,
    "C2": pilot_row,
    "C3": unlisted,
    "C4": forged,
    "D1": followed,
    "D2": drained,
    "D3": kept,
    "D4": empty,
}


def _known(process: Process, workspace_id: UUID) -> dict[str, Any]:
    """What a process holds of the workspace's policy now; nothing where it would read it anew."""
    found = process.report.get("observations", {}).get("workspaces", {}).get(str(workspace_id), {})
    return found if isinstance(found, dict) else {}


def _mode(process: Process, workspace_id: UUID) -> str:
    """`unknown` where the process could not say."""
    if "workspaces" not in process.report.get("observations", {}):
        return "unknown"
    return str(_known(process, workspace_id).get("mode", "off"))
