"""Where the journal of a workspace and the enrolment of a principal stand, cached for at most five seconds.

The cache only decides whether a write is tried. The write itself reads everything again, behind the fence.
"""

import threading
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.conf import settings

from apps.core.db.cursors import Question, Rows
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session
from apps.observations.circuit import monotonic
from apps.observations.constants import LOCK_TIMEOUT_MS, POLICY_SECONDS, STATEMENT_TIMEOUT_MS
from apps.observations.policy import Collecting, Mode, collecting, mode_of, weaker

LIMITS = {"lock_timeout": f"{LOCK_TIMEOUT_MS}ms", "statement_timeout": f"{STATEMENT_TIMEOUT_MS}ms"}
MAX_CACHED = 10_000


@dataclass(frozen=True, slots=True)
class Journal:
    """What rules a workspace. `generation` is the version of its policy; the id tells one of its own from the
    default's of the same number."""

    policy_id: UUID | None
    generation: int
    policy: Collecting
    killed: bool
    gate_open: bool

    @property
    def mode(self) -> Mode:
        """The weaker of the deployment's ceiling and the workspace's mode."""
        return weaker(mode_of(settings.OBSERVATION_MODE_CEILING), self.policy.mode)

    @property
    def text_days(self) -> int | None:
        """Days that a text is kept, the smaller of setting and policy; None for hashes only."""
        own, given = self.policy.text_days, settings.OBSERVATION_TEXT_DAYS
        if self.mode != "platform-text" or own is None or given is None:
            return None
        return min(own, given)


@dataclass(frozen=True, slots=True)
class Enrolled:
    """The active enrolment of a principal."""

    id: UUID
    purpose: str
    consent_version: str


@dataclass(frozen=True, slots=True)
class Standing:
    journal: Journal
    enrolled: Enrolled | None
    erased_before: datetime | None = None


def asked_standing() -> Question[Standing]:
    """As the database says when it is asked, of the session's principal; one read."""
    return Question("SELECT * FROM observations_admission()", None, _standing)


def _standing(rows: Rows) -> Standing:
    ((policy_id, generation, stored, killed, gate_open, *own, erased),) = rows  # the function returns one
    journal = Journal(policy_id, generation or 0, collecting(stored or {"mode": "off"}), killed, gate_open)
    enrolled = Enrolled(*own) if own[0] else None
    return Standing(journal, enrolled, erased)


class Known:
    """What this process knows, by workspace and by principal."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._journals: dict[UUID, tuple[float, Journal]] = {}
        self._enrolments: dict[UUID, tuple[float, Enrolled | None]] = {}

    def journal(self, workspace_id: UUID) -> Journal | None:
        found = self._journals.get(workspace_id)
        return found[1] if found and monotonic() < found[0] else None

    def standing(self, caller: PrincipalIdentity) -> Standing:
        """Out of the cache, else by one read in a session of its own. Raises what the database does.

        Whether a principal takes part is asked only where the journal of its workspace is on.
        """
        journal = self.journal(caller.workspace_id)
        if journal is not None and (journal.killed or journal.mode == "off" or not journal.gate_open):
            return Standing(journal, None)
        known = self._enrolments.get(caller.principal_id)
        if journal is not None and known is not None and monotonic() < known[0]:
            return Standing(journal, known[1])
        asked = asked_standing()
        with principal_session(caller, limits=LIMITS, along=[asked]):
            found = asked.answer
        self._keep(caller, found)
        return found

    def _keep(self, caller: PrincipalIdentity, found: Standing) -> None:
        until = monotonic() + POLICY_SECONDS
        with self._lock:
            if len(self._enrolments) >= MAX_CACHED:
                self._enrolments.clear()
            self._journals[caller.workspace_id] = (until, found.journal)
            self._enrolments[caller.principal_id] = (until, found.enrolled)

    def forget(self) -> None:
        """Read anew at the next search."""
        with self._lock:
            self._journals.clear()
            self._enrolments.clear()

    def journals(self) -> dict[UUID, Journal]:
        """The workspaces whose journal this process knows now, for its heartbeat."""
        now = monotonic()
        return {key: journal for key, (until, journal) in list(self._journals.items()) if now < until}


known = Known()
