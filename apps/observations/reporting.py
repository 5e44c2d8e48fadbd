"""What a process says of the journal in its heartbeat: as it knows it, not as the database has it.

Each heartbeat, and each start, also looks whether the database is the one for which the journal is open.
"""

from typing import Any

from django.conf import settings

from apps.observations.circuit import circuit
from apps.observations.metrics import ADMISSIONS, WRITES, counted
from apps.observations.policy import mode_of
from apps.observations.services.restore import close_if_restored
from apps.observations.standing import known


def heartbeat_report() -> dict[str, Any]:
    """Ceiling, kill switch, whether the gate is open, mode and generation of each workspace that this process knows
    now, and what became of its searches. A closed gate makes it forget what it knows, so that the next search reads
    that the journal is closed."""
    gate_open = close_if_restored()
    if not gate_open:
        known.forget()
    return {
        "gate_open": gate_open,
        "ceiling": mode_of(settings.OBSERVATION_MODE_CEILING),
        "killed": bool(settings.OBSERVATION_KILL_SWITCH),
        "workspaces": {
            str(workspace): {"mode": journal.mode, "generation": journal.generation}
            for workspace, journal in known.journals().items()
        },
        "circuit_closed": circuit.closed,
        "admissions": counted(ADMISSIONS),
        "writes": counted(WRITES),
    }


def refusal() -> str | None:
    """Why web, worker and beat must not start: the database is a restored or copied one."""
    if close_if_restored():
        return None
    return (
        "this database was restored or copied, and its journal is closed. Run:\n"
        "  manage.py journal_gate drain --erasures FILE\n"
        "  manage.py journal_gate open --first NAME --second NAME --reason WHY"
    )
