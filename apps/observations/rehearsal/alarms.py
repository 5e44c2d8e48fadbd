"""B7 and B8: upkeep that stops, says nothing or cannot be read opens an alarm, and closes it when it goes on."""

from typing import Any

from apps.observations import retention, status
from apps.observations.rehearsal.posted import Shown
from apps.operations import expiry, watch
from apps.operations.models import Alarm

MOVED_BACK = "31 minutes"
SOURCE = f"expiry:{retention.NAME}"
STATE = "observations_maintenance_state"


def missed_run(owner: Any) -> Shown:
    """B7: upkeep ran, its heartbeat is moved back, the alarm opens; it runs again, the alarm closes."""
    expiry.drain(retention.NAME)
    owner.execute(f"UPDATE {STATE} SET last_success_at = last_success_at - %s::interval", [MOVED_BACK])
    seconds = float(status.read().values["seconds_since_success"])
    alarm = _opened("success_stale")
    expiry.drain(retention.NAME)
    closed = _closed(alarm)
    return Shown("B7", closed, {"seconds_since_success": round(seconds), "alarm": alarm, "closed": closed})


def silence(owner: Any) -> Shown:
    """B8: no data at all, and a status that nobody can read."""
    # An installation that is new is given the time of two runs before a first one counts as missed.
    owner.execute(
        "UPDATE operations_expirystate SET known_since = known_since - %s::interval WHERE name = %s",
        [MOVED_BACK, retention.NAME],
    )
    owner.execute(f"UPDATE {STATE} SET last_success_at = NULL")
    no_data = _opened("never_succeeded")
    expiry.drain(retention.NAME)
    revoke = "REVOKE EXECUTE ON FUNCTION observations_status() FROM memory_monitor"
    owner.execute(revoke)
    try:
        unread = _opened(watch.STATUS_UNKNOWN)
    finally:
        owner.execute(revoke.replace("REVOKE", "GRANT").replace("FROM", "TO"))
    closed = _closed(no_data) and _closed(unread)
    return Shown("B8", closed, {"no_data_alarm": no_data, "query_failure_alarm": unread, "closed": closed})


def _opened(reason: str) -> str | None:
    """The alarm that a round of the watch opens; None where it opens none."""
    watch.check_expiry()
    found = Alarm.objects.filter(source=SOURCE, reason=reason, resolved_at=None)
    alarm = found.values_list("pk", flat=True).first()
    return alarm.hex if alarm else None  # with dashes the filter of evidence refuses it


def _closed(alarm: str | None) -> bool:
    watch.check_expiry()
    return alarm is not None and Alarm.objects.filter(pk=alarm).exclude(resolved_at=None).exists()
