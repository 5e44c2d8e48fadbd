"""What a rehearsal showed, as it is posted."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.core import clock
from apps.observations.models.activation import Result

METHOD = "rehearsal.1"


@dataclass(frozen=True, slots=True)
class Shown:
    """One item: numbers, codes and booleans that were measured, and whether they are what they have to be."""

    item: str
    passed: bool
    measured: dict[str, Any]

    def body(self, run: UUID) -> dict[str, Any]:
        """The body of `POST /v1/observations/evidence`."""
        return {
            "run_id": str(run),
            "item": self.item,
            "result": (Result.PASS if self.passed else Result.FAIL).value,
            "release": settings.RELEASE,
            "observed_at": clock.iso(clock.now()),
            "method": METHOD,
            "measured": {"disposable": True} | self.measured,
        }
