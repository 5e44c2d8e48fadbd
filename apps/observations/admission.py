"""Whether a served search may be observed. The first condition that fails ends it; its code is counted, never shown.

Nothing here raises: without a ticket the search is answered as if there were no journal.
"""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import structlog
from django.conf import settings
from django.db import Error as StorageError

from apps.core import clock
from apps.core.db.identity import PrincipalIdentity
from apps.core.ids import uuid7
from apps.observations.circuit import circuit
from apps.observations.fingerprints import active_key
from apps.observations.metrics import ADMISSIONS
from apps.observations.models.observations import Corpus
from apps.observations.policy import mode_of
from apps.observations.standing import Enrolled, Journal, Standing, known

log = structlog.get_logger(__name__)

ADMITTED = "admitted"
KILLED = "killed"
MODE_OFF = "mode_off"
JOURNAL_CLOSED = "journal_closed"
NO_KEY = "no_key"
NOT_VERIFIED = "not_verified"
NOT_ENROLLED = "not_enrolled"
NOT_TRACED = "not_traced"
PRIVATE_NOT_ALLOWED = "private_not_allowed"
BUSY = "busy"
UNREADABLE = "unreadable"
"""What admission rests on could not be read: as good as off."""


@dataclass(frozen=True, slots=True)
class Served:
    """What is asked of a search: by whom, verified by a credential, with a committed trace, of which corpus."""

    caller: PrincipalIdentity
    verified: bool
    traced: bool
    shared_only: bool


@dataclass(frozen=True, slots=True)
class Ticket:
    """The right to write one record, under what held when it was given."""

    id: UUID
    workspace_id: UUID
    principal_id: UUID
    policy_id: UUID | None
    generation: int
    corpus: Corpus
    observed_at: datetime
    text_days: int | None
    record_hours: int
    enrolled: Enrolled


class _Refused(Exception):
    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def admit(served: Served) -> Ticket | None:
    """A ticket for a served search, or None. At most one read, and none where nothing is collected."""
    try:
        ticket = _admitted(served)
    except _Refused as refused:
        ADMISSIONS.labels(refused.code).inc()
        return None
    ADMISSIONS.labels(ADMITTED).inc()
    return ticket


def standing_of(caller: PrincipalIdentity) -> Standing | None:
    """Where a caller stands when it takes part now; None where it does not, for whatever reason."""
    try:
        standing = _standing(caller)
        _enrolled(standing)
    except _Refused:
        return None
    return standing


def _admitted(served: Served) -> Ticket:
    if settings.OBSERVATION_KILL_SWITCH:
        raise _Refused(KILLED)
    if mode_of(settings.OBSERVATION_MODE_CEILING) == "off":
        raise _Refused(MODE_OFF)
    if not served.verified:
        raise _Refused(NOT_VERIFIED)
    standing = _standing(served.caller)
    enrolled = _enrolled(standing)
    if not served.traced:
        raise _Refused(NOT_TRACED)
    if not (served.shared_only or standing.journal.policy.collect_private):
        raise _Refused(PRIVATE_NOT_ALLOWED)
    if not circuit.closed:
        raise _Refused(BUSY)
    return _ticket(served, standing.journal, enrolled)


def _standing(caller: PrincipalIdentity) -> Standing:
    """Raises _Refused for all that concerns the deployment and the workspace."""
    if settings.OBSERVATION_KILL_SWITCH:
        raise _Refused(KILLED)
    if mode_of(settings.OBSERVATION_MODE_CEILING) == "off":
        raise _Refused(MODE_OFF)
    if not circuit.closed:
        raise _Refused(BUSY)
    try:
        standing = known.standing(caller)
    except StorageError:
        circuit.failed()
        log.error("observation_not_stored")
        raise _Refused(UNREADABLE) from None
    if standing.journal.killed:
        raise _Refused(KILLED)
    if standing.journal.mode == "off":
        raise _Refused(MODE_OFF)
    if not standing.journal.gate_open:
        raise _Refused(JOURNAL_CLOSED)
    if active_key() is None:
        raise _Refused(NO_KEY)
    return standing


def _enrolled(standing: Standing) -> Enrolled:
    if standing.enrolled is None:
        raise _Refused(NOT_ENROLLED)
    return standing.enrolled


def _ticket(served: Served, journal: Journal, enrolled: Enrolled) -> Ticket:
    return Ticket(
        id=uuid7(),
        workspace_id=served.caller.workspace_id,
        principal_id=served.caller.principal_id,
        policy_id=journal.policy_id,
        generation=journal.generation,
        corpus=Corpus.SHARED if served.shared_only else Corpus.PRIVATE,
        observed_at=clock.now(),
        text_days=journal.text_days,
        record_hours=journal.policy.record_hours,
        enrolled=enrolled,
    )
