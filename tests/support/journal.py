"""A journal that is on: settings, policy, enrolment, and rows as the owner of the tables writes them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session, staff_session
from apps.core.ids import uuid7
from apps.core.policies import policy_hash
from apps.observations.circuit import circuit
from apps.observations.policy import KIND
from apps.observations.services.enrolments import enrol
from apps.observations.standing import known
from tests.support.factories import World, make_staff
from tests.support.statements import sent

KEY = "test-only-key-" * 4
KEY_ID = "key-1"
DEFAULT = {"mode": "platform-text", "text_days": None, "record_hours": 2160, "collect_private": False}
PURPOSE, CONSENT = "retrieval-quality", "2026-01"
HOUR = timedelta(hours=1)
HIT = UUID("01900000-0000-7000-8000-00000000000a")


def configure(settings: Any, **more: Any) -> None:
    """The deployment allows all that a workspace may want."""
    given = {
        "MODE_CEILING": "platform-text",
        "KILL_SWITCH": False,
        "HMAC_KEYS": {KEY_ID: KEY},
        "HMAC_ACTIVE_KEY": KEY_ID,
        "TEXT_DAYS": 90,
    } | more
    for name, value in given.items():
        setattr(settings, f"OBSERVATION_{name}", value)
    forget()


def forget() -> None:
    """What this process remembers of policies and failures."""
    known.forget()
    circuit.reset()


def set_policy(owner: Any, workspace_id: UUID, **document: Any) -> None:
    """Append a version, as if an approved run had published it. `owner` is a connection of the tables' owner."""
    whole = DEFAULT | document
    owner.execute(
        "INSERT INTO core_storedpolicy (id, workspace_id, kind, version, document, reason, hash) "
        "SELECT %s, %s, %s, coalesce(max(version), 0) + 1, %s, '', %s FROM core_storedpolicy "
        "WHERE kind = %s AND workspace_id = %s",
        [uuid7(), workspace_id, KIND, json.dumps(whole), policy_hash(KIND, whole), KIND, workspace_id],
    )
    known.forget()


def take_part(world: World, principal: PrincipalIdentity | None = None) -> UUID:
    """Enrol a principal through the service; the enrolment's id."""
    staff = make_staff(world.workspace, "operate_collection")
    with staff_session(staff):
        row = enrol(
            principal_id=(principal or world.principal).principal_id,
            purpose=PURPOSE,
            consent_version=CONSENT,
            reason="agreed in writing",
        )
    known.forget()
    return row.pk


def record(
    owner: Any,
    principal: PrincipalIdentity,
    *,
    ago: timedelta = HOUR,
    hours: int = 2160,
    text: str | None = None,
    text_life: timedelta | None = None,
    disposition: str | None = None,
    corpus: str = "shared",
    hits: tuple[UUID, ...] = (HIT,),
    observed_at: datetime | None = None,
    key_id: str = KEY_ID,
) -> UUID:
    """A row as it would have been written `ago`, with a text that lives for `text_life` from then on."""
    key = uuid7()
    snapshot = {
        "version": 1,
        "availableCount": len(hits),
        "returnedCount": len(hits),
        "omittedHits": False,
        "hits": [hit_of(hit, rank) for rank, hit in enumerate(hits, 1)],
    }
    kept = disposition or ("retained" if text is not None else "disabled")
    moment = "statement_timestamp() - %(ago)s::interval" if observed_at is None else "%(at)s::timestamptz"
    values = {
        "id": key,
        "workspace": principal.workspace_id,
        "principal": principal.principal_id,
        "corpus": corpus,
        "ago": ago,
        "at": observed_at,
        "hours": hours,
        "fingerprint": "0" * 64,
        "key": key_id,
        "disposition": kept,
        "snapshot": json.dumps(snapshot),
        "text": text,
        "life": text_life or timedelta(hours=hours),
    }
    owner.execute(
        f"""
        WITH record AS (
          INSERT INTO observations_observation
            (id, workspace_id, principal_id, corpus, observed_at, record_expires_at, query_fingerprint,
             fingerprint_key_id, fingerprint_version, text_disposition, purpose, consent_version, snapshot)
          SELECT %(id)s, %(workspace)s, %(principal)s, %(corpus)s, at, at + make_interval(hours => %(hours)s),
             %(fingerprint)s, %(key)s, 'hmac-sha256:nfc-trim-v1', %(disposition)s, 'p', 'c', %(snapshot)s
          FROM (SELECT {moment} AS at) one
          RETURNING id, workspace_id, principal_id, observed_at, text_disposition)
        INSERT INTO observations_observation_text
          (observation_id, workspace_id, principal_id, observed_at, text_disposition, query_text, text_expires_at)
        SELECT record.*, %(text)s, record.observed_at + %(life)s::interval FROM record
        WHERE %(text)s::text IS NOT NULL
        """,
        values,
    )
    return key


def hit_of(hit: UUID, rank: int = 1) -> dict[str, Any]:
    return {
        "id": str(hit),
        "rank": rank,
        "sourceRef": "1" * 64,
        "indexedContentHash": None,
        "retrievedContentHash": "2" * 64,
        "returnedContentHash": "2" * 64,
        "returnedParentHash": None,
        "excerpted": False,
    }


def feedback(owner: Any, principal: PrincipalIdentity, observation: UUID, hit: UUID = HIT) -> None:
    """Feedback on a hit, helpful, as of now."""
    owner.execute(
        "INSERT INTO observations_observation_feedback "
        "(id, workspace_id, principal_id, observation_id, hit_id, helpful, created_at, updated_at) "
        "VALUES (%s, %s, %s, %s, %s, true, now(), now())",
        [uuid7(), principal.workspace_id, principal.principal_id, observation, hit],
    )


def count(owner: Any, table: str, principal: PrincipalIdentity | None = None) -> int:
    """Rows of a table of the journal, hidden ones included."""
    where = f" WHERE principal_id = '{principal.principal_id}'" if principal else ""
    return int(owner.execute(f"SELECT count(*) FROM observations_{table}{where}").fetchone()[0])


def seen(principal: PrincipalIdentity, table: str) -> int:
    """Rows that the principal's own session sees."""
    with principal_session(principal), connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        return int(cursor.fetchone()[0])


@contextmanager
def statements() -> Iterator[list[str]]:
    """Every statement of the block with its values, whichever cursor sends it; known when the block has ended."""
    found: list[str] = []
    with sent() as collected:
        yield found
    found += [f"{sql} {values}" for sql, values in collected]


@contextmanager
def reset_state(owner: Any) -> Iterator[None]:
    """Upkeep as of an installation where it never ran, before and after."""
    sql = (
        "UPDATE observations_maintenance_state SET last_success_at = NULL, last_drained_at = NULL, "
        "processed_count = 0, last_failure_at = NULL, last_failure_code = '', consecutive_failures = 0"
    )
    owner.execute(sql)
    yield
    owner.execute(sql)
