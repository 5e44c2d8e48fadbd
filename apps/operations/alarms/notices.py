"""What is said of an alarm, and to whom: codes, counts, ages and a link; never text or subjects."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Q

from apps.core import clock
from apps.operations.models import Alarm, Delivery, Destination
from apps.operations.models.alarms import DestinationUse, Notice

DESTINATION_SOURCE = "destination:"
TEST_REASON = "test_alarm"


def body_of(alarm: Alarm, notice: Notice) -> dict[str, Any]:
    """The document of a notice."""
    return {
        "notice": notice.value,
        "test": False,
        "alarm": str(alarm.pk),
        "workspace": str(alarm.workspace_id) if alarm.workspace_id else None,
        "source": alarm.source,
        "reason": alarm.reason,
        "details": alarm.details,
        "opened_at": clock.iso(alarm.opened_at),
        "at": clock.iso(clock.now()),
        "link": f"{settings.PUBLIC_URL}/admin/operations/alarm/{alarm.pk}/change/",
    }


def test_body() -> dict[str, Any]:
    return {
        "notice": Notice.TEST.value,
        "test": True,
        "alarm": None,
        "workspace": None,
        "source": "operations",
        "reason": TEST_REASON,
        "details": {},
        "opened_at": None,
        "at": clock.iso(clock.now()),
        "link": f"{settings.PUBLIC_URL}/admin/operations/destination/",
    }


def send(alarm: Alarm, notice: Notice) -> int:
    """Queue the notice for every live destination of the alarm. Returns how many."""
    Alarm.objects.filter(pk=alarm.pk).update(last_notice_at=clock.now())
    body = body_of(alarm, notice)
    made = [
        Delivery(
            workspace_id=destination.workspace_id,
            destination=destination,
            alarm=alarm,
            notice=notice,
            body=body,
            created_at=clock.now(),
            next_attempt_at=clock.now(),
        )
        for destination in _destinations(alarm)
    ]
    Delivery.objects.bulk_create(made)
    return len(made)


def _destinations(alarm: Alarm) -> list[Destination]:
    """Those of the whole installation, and the workspace's; not the one that the alarm is about."""
    live = Destination.objects.filter(active=True, use=DestinationUse.LIVE)
    wanted = live.filter(Q(workspace=None) | Q(workspace_id=alarm.workspace_id))
    broken = destination_of(alarm.source)
    return list(wanted.exclude(pk=broken) if broken else wanted)


def source_of(destination_id: UUID) -> str:
    """The source of alarms about a destination itself."""
    return f"{DESTINATION_SOURCE}{destination_id}"


def destination_of(source: str) -> UUID | None:
    if not source.startswith(DESTINATION_SOURCE):
        return None
    return UUID(source.removeprefix(DESTINATION_SOURCE))
