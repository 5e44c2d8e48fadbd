"""The watch: once a minute, is every promise kept? Jobs fresh, runs alive, due rows gone, notices delivered."""

import structlog
from django.db import DatabaseError

from apps.operations import alarms, expiry, runs, samples
from apps.operations.models import Destination
from apps.operations.models.alarms import DestinationUse
from apps.operations.selectors import freshness
from apps.operations.tasks_base import send_call

logger = structlog.get_logger(__name__)

OVERDUE = "overdue"
STATUS_UNKNOWN = "status_unknown"
NO_DESTINATION = "no_destination"
UNCONFIRMED = "no_confirmed_destination"


def watch() -> dict[str, int]:
    """One round. Each part is independent of the others' failures; returns what it found."""
    counts = {"lost_runs": runs.sweep_lost(lambda declaration, call: send_call(declaration, call))}
    counts["overdue_jobs"] = check_freshness()
    counts["expiry_alarms"] = check_expiry()
    counts["repeated"] = alarms.repeat_unacknowledged()
    check_destinations()
    return counts


def check_freshness() -> int:
    """Alarm on every job whose last success is too old; sample the ages."""
    found = freshness()
    for job in found:
        if job.overdue:
            details = {"seconds": int(job.age), "limit_seconds": int(job.limit)}
            alarms.raise_alarm(source=job.name, reason=OVERDUE, details=details)
        else:
            alarms.resolve(source=job.name, reasons=(OVERDUE,))
    return sum(job.overdue for job in found)


def check_expiry() -> int:
    """Alarm on what the status functions say; sample backlogs. A status that cannot be read is an alarm."""
    total, readings = 0, []
    for kind in expiry.registered():
        source = f"expiry:{kind.name}"
        try:
            found = expiry.status(kind.name)
            if found.values["known_since"] is None:
                expiry.note_known(kind.name)
        except DatabaseError as error:
            alarms.raise_alarm(source=source, reason=STATUS_UNKNOWN, details={"code": type(error).__name__})
            total += 1
            continue
        details = {name: value for name, value in found.values.items() if isinstance(value, (int, float))}
        alarms.settle(source=source, readings=dict.fromkeys(found.urgent(), details))
        total += bool(found.urgent())
        labels = {"kind": kind.name}
        readings.append(
            samples.Reading("expiry_oldest_overdue_seconds", found.oldest_overdue_seconds, labels)
        )
        readings += [
            samples.Reading("expiry_overdue_rows", float(value or 0), {**labels, "what": name})
            for name, value in found.values.items()
            if name.startswith("expired_")
        ]
    samples.record(readings)
    return total


def check_destinations() -> None:
    """An alarm that reaches nobody is none: say on the status page when there is nowhere to send, or unproven."""
    live = list(Destination.objects.filter(active=True, use=DestinationUse.LIVE))
    readings = {}
    if not live:
        readings[NO_DESTINATION] = {"count": 0}
    elif not any(alarms.is_confirmed(destination) for destination in live):
        readings[UNCONFIRMED] = {"count": len(live)}
    alarms.settle(source="operations.destinations", readings=readings)
