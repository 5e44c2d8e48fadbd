"""Where an activation run stands, as staff see it; in a staff session that sees the run. Nothing is written."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection

from apps.core import clock, policies
from apps.core.models import StoredPolicy
from apps.observations.activation.bindings import bindings
from apps.observations.activation.checklist import Checklist, Line, approval_hash, checklist
from apps.observations.models import ActivationRun, Enrolment
from apps.observations.models.activation import RunState
from apps.observations.policy import KIND, collecting

BEFORE = (RunState.DRAFT, RunState.PROVISIONED, RunState.READY, RunState.APPROVED)
ON = (RunState.ENABLED, RunState.PILOT_VERIFIED)
OFF = (RunState.STOPPING, RunState.SHUTDOWN_UNVERIFIED, RunState.SHUTDOWN_VERIFIED, RunState.EMPTIED)
STAGE: dict[str, tuple[str, ...]] = {"A": BEFORE, "B": BEFORE, "C": ON, "D": OFF}


@dataclass(frozen=True, slots=True)
class Left:
    """Records of the workspace that are there, hidden ones included, and when the last is due."""

    records: int
    last_expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class RunStanding:
    """A run with all its lines. `version` is what an approval would be given for now; `void` says why the one that was
    asked for cannot be given any more, empty when it can."""

    run: ActivationRun
    before: Checklist
    pilot: Checklist
    off: Checklist
    version: str
    policy: StoredPolicy
    enrolled: int
    left: Left
    now: datetime

    @property
    def mode(self) -> str:
        return collecting(self.policy.document).mode

    @property
    def asked(self) -> bool:
        """Whether enabling waits for its second person, or was approved and waits to be done."""
        return self.run.requested_at is not None and self.run.state in (RunState.READY, RunState.APPROVED)

    @property
    def void(self) -> str:
        """`expired`, `changed`, or empty."""
        if not self.asked:
            return ""
        if self.run.valid_until is None or self.now >= self.run.valid_until:
            return "expired"
        return "changed" if self.blockers or self.version != self.run.approval_hash else ""

    @property
    def blockers(self) -> tuple[Line, ...]:
        """What keeps the mode off."""
        return self.before.blockers("AB")

    @property
    def failed_pilot(self) -> list[Line]:
        """The lines of C that failed; one of them ends a run."""
        return [line for line in self.pilot.lines if line.standing == "failed"]

    @property
    def unproven(self) -> bool:
        """Whether the platform ended it by itself, with a pilot that had not failed and not passed."""
        ended_itself = self.run.stopped_at is not None and self.run.stopped_by_id is None
        return ended_itself and not self.failed_pilot and bool(self.pilot.blockers("C"))

    def lines(self, group: str) -> list[Line]:
        found = {"A": self.before, "B": self.before, "C": self.pilot, "D": self.off}[group]
        return [line for line in found.lines if line.item.group == group]

    def is_at(self, group: str) -> bool:
        """Whether the items of a group are worked on now."""
        return self.run.state in STAGE[group]


def standing_of_run(run: ActivationRun) -> RunStanding:
    """With one look at what evidence is bound to, however many groups there are."""
    now = bindings()
    before = checklist(run, "AB", now=now)
    return RunStanding(
        run=run,
        before=before,
        pilot=checklist(run, "C", after=run.enabled_at, now=now),
        off=checklist(run, "D", after=run.stopped_at, now=now),
        version=approval_hash(run, before),
        policy=policies.followed(run.workspace_id, KIND),
        enrolled=Enrolment.objects.filter(workspace_id=run.workspace_id, withdrawn_at=None).count(),
        left=left_of(run.workspace_id),
        now=clock.now(),
    )


def left_of(workspace_id: UUID) -> Left:
    with connection.cursor() as cursor:
        cursor.execute("SELECT records, last_expires_at FROM observations_left(%s)", [workspace_id])
        return Left(*cursor.fetchone())
