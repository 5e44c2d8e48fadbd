"""What a process says of the journal in its heartbeat: as it knows it, not as the database has it."""

from typing import Any

from django.conf import settings

from apps.observations.policy import mode_of
from apps.observations.standing import known


def heartbeat_report() -> dict[str, Any]:
    """Ceiling, kill switch, and mode and generation of each workspace that this process knows now."""
    return {
        "ceiling": mode_of(settings.OBSERVATION_MODE_CEILING),
        "killed": bool(settings.OBSERVATION_KILL_SWITCH),
        "workspaces": {
            str(workspace): {"mode": journal.mode, "generation": journal.generation}
            for workspace, journal in known.journals().items()
        },
    }
