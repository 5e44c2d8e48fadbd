"""Writing one record, in a transaction of its own, after the trace and before the answer.

The law: it is bounded, it is not tried again, and it never fails a search. What it wrote is committed when it says
so. No queue, cache, task, log or error ever holds an event.
"""

import json
from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

import structlog
from django.db import connection

from apps.core.db.cursors import Question
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session
from apps.observations import admission
from apps.observations.circuit import circuit
from apps.observations.events import Event
from apps.observations.exceptions import NotStored, RoleNotIsolated
from apps.observations.fences import passing_fence
from apps.observations.metrics import WRITES
from apps.observations.standing import LIMITS, Standing, asked_standing

log = structlog.get_logger(__name__)

STORED = "stored"
FAILED = "failed"
CHANGED = "generation_changed"

# A role that row policies do not bind could write for others and would read what has expired.
NOT_ISOLATED = """
  SELECT coalesce(bool_or(r.rolsuper OR r.rolbypassrls OR pg_has_role(r.oid, 'memory_owner', 'MEMBER')), true)
  FROM pg_roles r WHERE r.rolname IN (session_user, current_user)
"""

INSERT = """
  WITH record AS (
    INSERT INTO observations_observation
      (id, workspace_id, principal_id, trace_id, corpus, observed_at, record_expires_at, query_fingerprint,
       fingerprint_key_id, fingerprint_version, text_disposition, release, ranking_profile_id, purpose,
       consent_version, snapshot)
    VALUES (%(id)s, %(workspace)s, %(principal)s, %(trace)s, %(corpus)s, %(observed_at)s, %(record_expires_at)s,
       %(fingerprint)s, %(key)s, %(version)s, %(disposition)s, %(release)s, %(profile)s, %(purpose)s, %(consent)s,
       %(snapshot)s::jsonb)
    ON CONFLICT (principal_id, id) DO NOTHING
    RETURNING id, workspace_id, principal_id, observed_at, text_disposition
  )
  INSERT INTO observations_observation_text
    (observation_id, workspace_id, principal_id, observed_at, text_disposition, query_text, text_expires_at)
  SELECT record.*, %(text)s::text, %(text_expires_at)s::timestamptz FROM record WHERE %(text)s::text IS NOT NULL
"""

_isolated: "WeakSet[object]" = WeakSet()
"""Physical connections whose login was looked at."""


def store(*, caller: PrincipalIdentity, event: Event) -> bool:
    """Whether the record is durable. Outside of any session; nothing is raised.

    It waits twice for the database. The record is sent right behind the question where the ground is now, and taken
    back by the end of the transaction where that has moved; only then does it wait for the commit.
    """
    try:
        looked_at, standing = _role_if_unknown(), asked_standing()
        along = [*looked_at, passing_fence(caller.workspace_id), standing, _inserting(event)]
        with principal_session(caller, limits=LIMITS, along=along):
            _require_isolated_role(looked_at)
            _require_unchanged(event, standing.answer)
    except RoleNotIsolated as refused:
        _drop_connection()
        not_stored(refused.code)
        return False
    except NotStored as refused:
        # The ground has moved since admission: nothing failed.
        WRITES.labels(refused.code).inc()
        return False
    except Exception:
        # Also what nobody foresaw: a driver's words may hold the query, so that none of it is kept.
        circuit.failed()
        not_stored(FAILED)
        return False
    WRITES.labels(STORED).inc()
    return True


def not_stored(code: str) -> None:
    """Count an event that could not even be made."""
    log.error("observation_not_stored")
    WRITES.labels(code).inc()


def _role_if_unknown() -> list[Question[Any]]:
    """What must be asked of the login of this connection: nothing, where it was looked at before."""
    connection.ensure_connection()
    if connection.connection in _isolated:
        return []
    return [Question(NOT_ISOLATED, None, lambda rows: not rows[0][0])]


def _require_isolated_role(asked: Sequence[Question[Any]]) -> None:
    if not all(isolated.answer for isolated in asked):
        raise RoleNotIsolated
    _isolated.add(connection.connection)


def _drop_connection() -> None:
    """End the physical connection, so that no pool hands it out again."""
    if not connection.in_atomic_block and connection.connection is not None:
        connection.connection.close()
        connection.close()


def _require_unchanged(event: Event, now: Standing) -> None:
    """What was admitted is refused when the ground has moved. Raises NotStored."""
    ticket = event.ticket
    if now.journal.killed:
        raise NotStored(admission.KILLED)
    if now.journal.mode == "off":
        raise NotStored(admission.MODE_OFF)
    if not now.journal.gate_open:
        raise NotStored(admission.JOURNAL_CLOSED)
    if (now.journal.policy_id, now.journal.generation) != (ticket.policy_id, ticket.generation):
        raise NotStored(CHANGED)
    if now.enrolled is None or now.enrolled.id != ticket.enrolled.id:
        raise NotStored(admission.NOT_ENROLLED)
    if now.erased_before is not None and ticket.observed_at <= now.erased_before:
        raise NotStored("erased")


def _inserting(event: Event) -> Question[None]:
    ticket = event.ticket
    values = {
        "id": ticket.id,
        "workspace": ticket.workspace_id,
        "principal": ticket.principal_id,
        "trace": event.trace_id,
        "corpus": ticket.corpus.value,
        "observed_at": ticket.observed_at,
        "record_expires_at": event.record_expires_at,
        "fingerprint": event.query_fingerprint,
        "key": event.fingerprint_key_id,
        "version": event.fingerprint_version,
        "disposition": event.text_disposition.value,
        "release": event.release,
        "profile": event.ranking_profile_id,
        "purpose": ticket.enrolled.purpose,
        "consent": ticket.enrolled.consent_version,
        "snapshot": json.dumps(event.snapshot),
        "text": event.query_text,
        "text_expires_at": event.text_expires_at,
    }
    return Question(INSERT, values, lambda rows: None)
