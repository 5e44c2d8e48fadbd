"""How the items of a run stand, computed at every reading: evidence grows stale without anyone writing anything."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

from django.conf import settings
from django.db.models import Q

from apps.core import canonical, clock, policies
from apps.observations.activation.bindings import Bindings, bindings
from apps.observations.activation.items import RELEASE, Item, of_groups
from apps.observations.models import ActivationRun, Evidence
from apps.observations.models.activation import Part, Result
from apps.observations.policy import KIND
from apps.operations import alarms
from apps.operations.models import Destination
from apps.operations.models.alarms import DestinationUse

BACKUPS = "B10"
"""Fails as long as the deployment does not declare how far back its backups reach."""

ALARM = "B7"
"""Fails as long as no live destination of alarms was confirmed by a human within 180 days."""

Standing = Literal["missing", "failed", "stale", "passed"]


class Shown(Protocol):
    """What of a row of evidence says how it stands; the values that it is bound to stand beside."""

    @property
    def result(self) -> str: ...
    @property
    def observed_at(self) -> datetime: ...


@dataclass(frozen=True, slots=True)
class Line:
    """One part of one item. `evidence` is the newest, None where there is none."""

    item: Item
    part: Part
    evidence: Evidence | None
    standing: Standing

    @property
    def code(self) -> str:
        return f"{self.item.code}:{self.part.value}"


@dataclass(frozen=True, slots=True)
class Checklist:
    """All lines of some groups, and what they were compared with."""

    lines: tuple[Line, ...]
    now: Bindings

    def blockers(self, groups: str = "ABCD") -> tuple[Line, ...]:
        """What keeps the groups from being passed."""
        return tuple(line for line in self.lines if line.item.group in groups and line.standing != "passed")


def newest(run_id: UUID) -> dict[tuple[str, str], Evidence]:
    """The evidence of each item and part that no other supersedes; as far as the session sees."""
    rows = Evidence.objects.filter(run_id=run_id, superseded_by=None).select_related("actor", "second_actor")
    found = rows.order_by("recorded_at", "id")
    return {(row.item, row.part): row for row in found}


def checklist(
    run: ActivationRun, groups: str = "AB", *, after: datetime | None = None, now: Bindings | None = None
) -> Checklist:
    """In a staff session that sees the run. Evidence observed before `after` counts as stale; `now` is what it is
    compared with, where that is known already."""
    held, now, moment = newest(run.pk), now or bindings(), clock.now()
    unheard = "B" in groups and not is_heard(run.workspace_id)
    lines = []
    for item in of_groups(groups):
        for part in item.parts:
            row = held.get((item.code, part.value))
            found = standing(item, row, now, moment, after)
            if item.code == ALARM and unheard and found == "passed":
                found = "failed"
            lines.append(Line(item, part, row, found))
    return Checklist(tuple(lines), now)


def is_heard(workspace_id: UUID) -> bool:
    """Whether alarms of the workspace go somewhere that a human has confirmed."""
    live = Destination.objects.filter(active=True, use=DestinationUse.LIVE)
    return any(
        alarms.is_confirmed(destination)
        for destination in live.filter(Q(workspace=None) | Q(workspace_id=workspace_id))
    )


def approval_hash(run: ActivationRun, found: Checklist) -> str:
    """Over all evidence of A and B, what it is bound to now, the mode wanted and the policy that would change."""
    return canonical.checksum(
        {
            "evidence": [
                [
                    line.code,
                    str(line.evidence.pk) if line.evidence else None,
                    line.evidence and line.evidence.result,
                ]
                for line in found.lines
            ],
            "bindings": found.now.document(),
            "mode": run.mode,
            "policy": policies.followed(run.workspace_id, KIND).hash,
        }
    )


def standing(
    item: Item, row: Shown | None, now: Bindings, moment: datetime, after: datetime | None = None
) -> Standing:
    """How a row of evidence stands at a moment, against what is in force then."""
    if row is None:
        return "missing"
    if row.result != Result.PASS or (item.code == BACKUPS and settings.ERASURE_BACKUP_DAYS is None):
        return "failed"
    if after is not None and row.observed_at < after:
        return "stale"
    if item.fresh is not None and row.observed_at < moment - item.fresh:
        return "stale"
    if RELEASE in item.bound and not now.release:
        return "stale"
    if any(getattr(row, name) != getattr(now, name) for name in item.bound):
        return "stale"
    return "passed"
