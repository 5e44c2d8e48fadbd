"""When a task runs, declared in code: at an interval, or at a time of day in UTC."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from celery.schedules import crontab
from celery.schedules import schedule as interval_schedule


@dataclass(frozen=True, slots=True)
class Every:
    """At an interval of whole seconds, counted from the last sending."""

    interval: timedelta

    def celery(self) -> Any:
        return interval_schedule(self.interval)

    def document(self) -> dict[str, Any]:
        return {"every_seconds": int(self.interval.total_seconds())}

    def __str__(self) -> str:
        return f"every {self.interval}"


@dataclass(frozen=True, slots=True)
class Daily:
    """Once a day at hour:minute UTC."""

    hour: int
    minute: int
    interval: timedelta = timedelta(days=1)

    def celery(self) -> Any:
        return crontab(hour=str(self.hour), minute=str(self.minute))

    def document(self) -> dict[str, Any]:
        return {"daily": f"{self.hour:02d}:{self.minute:02d}"}

    def __str__(self) -> str:
        return f"daily at {self.hour:02d}:{self.minute:02d} UTC"


Schedule = Every | Daily


def every(**parts: float) -> Every:
    """`every(minutes=15)`; the parts are those of `timedelta`."""
    interval = timedelta(**parts)
    if interval < timedelta(seconds=1) or interval.microseconds:
        raise ValueError("an interval is a whole number of seconds")
    return Every(interval)


def daily(at: str) -> Daily:
    """`daily("02:00")`, in UTC."""
    hour, minute = (int(part) for part in at.split(":"))
    if not (0 <= hour < 24 and 0 <= minute < 60):
        raise ValueError("a time of day is hh:mm")
    return Daily(hour, minute)
