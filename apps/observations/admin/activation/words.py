"""Items, states and refusals of activation in words."""

from typing import Any

from apps.core.ui import Tone
from apps.observations.activation.checklist import Standing
from apps.observations.models.activation import RunState

NAMES: dict[str, str] = {
    "A1": "release is the head of main, its suites are green",
    "A2": "migrations applied are those of the release",
    "A3": "database: server, identity, owner, backup, TLS",
    "A4": "roles compare clean, logins enabled one by one",
    "A5": "isolation suite passed on a disposable database",
    "B1": "every live process has the mode off, and this release",
    "B4": "scheduled cleanup seen",
    "B5": "nothing is overdue",
    "B6": "the 15-minute schedule runs",
    "B7": "missed-run alarm shown and received",
    "B8": "alarms for no data and failing queries shown and received",
    "B9": "restore drill passed",
    "B10": "backup deletion and restore policy of the provider",
    "B11": "operators, access and on-call are named",
    "C1": "enabled by two persons, one enrolment",
    "C2": "one search is durable as it was returned, and cited",
    "C3": "an unlisted principal leaves nothing",
    "C4": "a forged identity header leaves nothing",
    "D1": "off: every live process follows",
    "D2": "drained: fence taken, all follow, fresh probes store nothing",
    "D3": "upkeep, roles and keys stay",
    "D4": "the journal is empty",
}
GROUPS: dict[str, tuple[str, str]] = {
    "A": ("Provisioned", "release, database, roles"),
    "B": ("Ready", "processes, upkeep, alarms, people"),
    "C": ("Pilot", "one enrolment; any failing switches off, and so do 24 hours without C2 and C3"),
    "D": ("Off, with proof", "a quiet interval or an unchanged count is no proof"),
}
ALARMS = ("B7", "B8")
"""Items of which a human says which alarm arrived."""

TONES: dict[Standing, Tone] = {"passed": "ok", "missing": "warn", "stale": "warn", "failed": "bad"}
WORST: tuple[Standing, ...] = ("failed", "missing", "stale", "passed")

PATH: tuple[RunState, ...] = (
    RunState.DRAFT,
    RunState.PROVISIONED,
    RunState.READY,
    RunState.APPROVED,
    RunState.ENABLED,
    RunState.PILOT_VERIFIED,
    RunState.STOPPING,
    RunState.SHUTDOWN_VERIFIED,
    RunState.EMPTIED,
)
STATES: dict[str, str] = {
    RunState.DRAFT: "draft",
    RunState.PROVISIONED: "provisioned",
    RunState.READY: "ready",
    RunState.APPROVED: "approved",
    RunState.ENABLED: "enabled",
    RunState.PILOT_VERIFIED: "pilot verified",
    RunState.STOPPING: "stopping",
    RunState.SHUTDOWN_VERIFIED: "shutdown verified",
    RunState.SHUTDOWN_UNVERIFIED: "shutdown not verified",
    RunState.EMPTIED: "emptied",
}
STATE_TONES: dict[str, Tone] = {
    RunState.ENABLED: "run",
    RunState.PILOT_VERIFIED: "ok",
    RunState.STOPPING: "warn",
    RunState.SHUTDOWN_UNVERIFIED: "bad",
}
# What takes a run there.
NEEDS: dict[str, str] = {
    RunState.PROVISIONED: "all of A",
    RunState.READY: "all of B",
    RunState.APPROVED: "another person",
    RunState.ENABLED: "one enrolment",
    RunState.PILOT_VERIFIED: "all of C",
    RunState.STOPPING: "one person",
    RunState.SHUTDOWN_VERIFIED: "D1, D2",
    RunState.EMPTIED: "D3, D4",
}
VOIDS = "Any change of evidence, release, migrations, rights, names of settings or policy voids it."
VOID: dict[str, str] = {
    "expired": "24 hours are over. Ask again.",
    "changed": "What was asked for has changed or went stale. Ask again.",
}
GRANTS: dict[str, str] = {
    "operate_collection": "operate collection",
    "review_retention": "review retention",
}


ALARM_WORDS: dict[str, str] = {
    "pilot_failed": "switched a pilot off, since a check of it failed",
    "pilot_unproven": "switched a pilot off, since it was not proven within 24 hours",
    "shutdown_unverified": "cannot prove that collection is off",
    "evidence_stale": "found evidence under a run that has gone stale",
    "copies_overdue": "found exported copies past their deadline",
}


def name_of(person: Any) -> str:
    return str(person.get_username()) if person else "a person who is gone"
