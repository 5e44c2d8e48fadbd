"""Alarms about a profile: it is active and does not apply, or does worse on what was judged since.

Each profile is a source of its own, so that one is seen beside another and closed by itself. The details lead to the
page from which the profile is rolled back; nothing here moves a pointer.
"""

import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from uuid import UUID

from apps.operations import alarms

INAPPLICABLE, REGRESSED = "inapplicable", "regressed"
TOLD_AGAIN_AFTER = 600.0
"""Seconds in which a process tells of the same profile and cause once: every search of the scope set finds it."""


def source_of(profile_id: UUID) -> str:
    """The source of alarms about a profile."""
    return f"learning.profile:{profile_id}"


def page_of(profile_id: UUID) -> str:
    """Where staff see the profile and roll it back: a path below the platform's address."""
    return f"admin/learning/rankingprofile/{profile_id}/change/"


def tell_inapplicable(workspace_id: UUID, profile_id: UUID, cause: str) -> None:
    """A request was ranked without its active profile. Raises DatabaseError; the next request then tells."""
    _tell(workspace_id, profile_id, cause, int(time.monotonic() // TOLD_AGAIN_AFTER))


# Who is forgotten here, and two threads at once, only say it twice. What raised is not remembered.
@lru_cache(maxsize=1024)
def _tell(workspace_id: UUID, profile_id: UUID, cause: str, period: int) -> None:
    """Once a period, as far as is remembered."""
    alarms.raise_alarm(
        source=source_of(profile_id),
        reason=INAPPLICABLE,
        details={"cause": cause, "page": page_of(profile_id)},
        workspace=workspace_id,
    )


def settle(workspace_id: UUID, profile_id: UUID, found: Mapping[str, Mapping[str, Any]]) -> None:
    """All that a look at an active profile found, by reason; what it did not find again is closed."""
    readings = {reason: dict(details) | {"page": page_of(profile_id)} for reason, details in found.items()}
    alarms.settle(source=source_of(profile_id), readings=readings, workspace=workspace_id)


def no_longer_active(workspace_id: UUID, profile_id: UUID) -> None:
    """Nothing that was said of the profile needs a human any more."""
    alarms.resolve(source=source_of(profile_id), workspace=workspace_id)
