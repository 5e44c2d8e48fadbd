"""Upkeep of the journal. Expiry runs whatever the mode, the ceiling, the kill switch or the enrolments say."""

from datetime import timedelta
from uuid import UUID

import structlog
from django.conf import settings

from apps.core import outbound
from apps.core.db.verify import differences
from apps.observations import retention, status
from apps.observations.services import erasure, unattended
from apps.operations import alarms, expiry, samples
from apps.operations.tasks_base import daily, every, task

log = structlog.get_logger(__name__)

PREFIX = "observation_"
ROLES_SOURCE = "observations.verify_roles"
ROLES_DIFFER = "roles_differ"


@task(
    name="observations.expire",
    schedule=every(minutes=15),
    lease=timedelta(minutes=15),
    soft_limit=timedelta(minutes=12),
    misfire="run_once",
    freshness=timedelta(minutes=30),
)
def expire() -> dict[str, int]:
    """Delete records and texts past their deadlines, with all that hangs on them."""
    done = expiry.drain(retention.NAME)
    if done.drained:
        ping_deadman()
    return done.counts


@task(
    name="observations.status_sample",
    schedule=every(minutes=5),
    lease=timedelta(minutes=2),
    soft_limit=timedelta(minutes=1),
    misfire="skip",
)
def status_sample() -> dict[str, int]:
    """Sample how the journal's upkeep stands; each gauge shows the time it was taken."""
    return {"samples": samples.record(readings(status.read()))}


@task(
    name="observations.erase",
    lease=timedelta(minutes=35),
    soft_limit=timedelta(minutes=30),
    misfire="run_once",
)
def erase(certificate_id: UUID) -> dict[str, int]:
    """Delete what the fence of one erasure of the journal has closed off."""
    certificate = erasure.run(certificate_id)
    return {"deleted": sum(table["deleted"] for table in certificate.tables)}


@task(
    name="observations.resume_erasures",
    schedule=every(minutes=15),
    lease=timedelta(minutes=35),
    soft_limit=timedelta(minutes=30),
    misfire="run_once",
)
def resume_erasures() -> dict[str, int]:
    """Go on with erasures of the journal that were interrupted or lack their line in the erasure file."""
    return erasure.resume()


@task(
    name="observations.verify_roles",
    schedule=daily("02:30"),
    lease=timedelta(minutes=15),
    soft_limit=timedelta(minutes=10),
    misfire="run_once",
    freshness=timedelta(hours=48),
)
def verify_roles() -> dict[str, int]:
    """Compare roles, rights, policies and functions with the declarations; any difference is an alarm."""
    found = differences()
    counts = {"differences": len(found), "loosening": sum(each.loosens for each in found)}
    for each in found:
        log.error("role_difference", kind=each.family, source="_".join(each.object.split()))
    alarms.settle(source=ROLES_SOURCE, readings={ROLES_DIFFER: counts} if found else {})
    return counts


@task(
    name="observations.stop_unsafe",
    schedule=every(minutes=5),
    lease=timedelta(minutes=5),
    soft_limit=timedelta(minutes=4),
    misfire="run_once",
    freshness=timedelta(minutes=15),
)
def stop_unsafe() -> dict[str, int]:
    """Switch off each pilot of which a check failed, or that has not passed C2 and C3 within 24 hours."""
    return {"stopped": unattended.stop_unsafe()}


@task(
    name="observations.due_dates",
    schedule=daily("04:40"),
    lease=timedelta(minutes=45),
    soft_limit=timedelta(minutes=40),
    misfire="run_once",
)
def due_dates() -> dict[str, int]:
    """Alarm on exported copies that are overdue, and on evidence that went stale under a run that is ready or on."""
    return unattended.look_at_due_dates()


def readings(reading: status.Reading) -> list[samples.Reading]:
    """The numbers of a reading as gauges; what has no value yet has no sample."""
    return [
        samples.Reading(PREFIX + name, float(value))
        for name, value in reading.values.items()
        if isinstance(value, (bool, int, float))
    ]


def ping_deadman() -> None:
    """Tell the service outside that expiry is alive, when nothing is wrong. It alarms when this stops."""
    url = settings.OBSERVATION_DEADMAN_URL
    if not url or status.read().alarm:
        return
    try:
        outbound.request("GET", url)
    except (outbound.OutboundRefused, outbound.OutboundFailed) as error:
        log.warning("deadman_not_reached", code=error.code)
