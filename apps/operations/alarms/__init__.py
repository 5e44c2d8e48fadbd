"""Alarms: something needs a human.

    alarms.raise_alarm(source="traces.expire", reason="overdue", details={"seconds": 4100})
    alarms.resolve(source="traces.expire", reasons=("overdue",))
    alarms.settle(source="observations.status", readings={"failing": {"failures": 3}})

One is open per workspace, source and reason. Sources and reasons are codes; details are numbers and codes.
Inside a session these take effect when it commits.
"""

from apps.operations.alarms.destinations import (
    confirm_destination,
    is_confirmed,
    rotate_secret,
    save_destination,
    send_test,
    signing_secret,
)
from apps.operations.alarms.services import acknowledge, raise_alarm, repeat_unacknowledged, resolve, settle

__all__ = [
    "acknowledge",
    "confirm_destination",
    "is_confirmed",
    "raise_alarm",
    "repeat_unacknowledged",
    "resolve",
    "rotate_secret",
    "save_destination",
    "send_test",
    "settle",
    "signing_secret",
]
