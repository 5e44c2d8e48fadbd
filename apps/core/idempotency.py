"""Idempotency keys: the same call twice has one effect and one answer.

A key is unique per principal across all mutating calls. It is written before the call's effect and in the same
transaction, under the principal's lock: of two equal calls at once the second waits, finds the key and gets the
first one's answer. A call that fails leaves no key.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db import transaction

from apps.core import canonical
from apps.core.db import cursors
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.locks import lock_principal
from apps.core.db.sessions import current_principal
from apps.core.ids import uuid7
from apps.core.problems import InvalidRequest, StateConflict

T = TypeVar("T")

LONGEST_KEY = 128

_FORGET = """
DELETE FROM core_idempotencykey WHERE principal_id = %s AND key = %s AND expires_at <= statement_timestamp()
"""
_TAKE = """
INSERT INTO core_idempotencykey (id, workspace_id, principal_id, key, tool, payload_sha256, receipt_id)
VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (principal_id, key) DO NOTHING
"""
_KNOWN = "SELECT payload_sha256, receipt_id FROM core_idempotencykey WHERE principal_id = %s AND key = %s"
_LIMIT = "UPDATE core_idempotencykey SET expires_at = %s WHERE principal_id = %s AND key = %s"


@dataclass(frozen=True, slots=True)
class Made(Generic[T]):
    """What a call did: its answer, and until when its key counts (None: as long as the record is there)."""

    answer: T
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Once(Generic[T]):
    """The answer of a call; `replayed` says that it was given before and that nothing happened now."""

    answer: T
    replayed: bool


def key_of(header: str | None, body: str | None, *, code: str = "invalid_request") -> str:
    """The key of a call, from the header `Idempotency-Key` or the body's `idempotency_key`; not from both."""
    if header is not None and body is not None:
        raise InvalidRequest(
            "The key comes in the header or in the body", pointer="/idempotency_key", code=code
        )
    key = header if header is not None else body
    if key is None or not 1 <= len(key) <= LONGEST_KEY:
        raise InvalidRequest(f"A key of 1 to {LONGEST_KEY} characters", pointer="/idempotency_key", code=code)
    return key


def payload_digest(tool: str, payload: Any) -> bytes:
    """SHA-256 over canonical JSON of tool and arguments: member order does not count, list order does, and null
    is not absence."""
    return hashlib.sha256(canonical.dumps({"tool": tool, "args": payload})).digest()


def once(
    *,
    tool: str,
    key: str,
    payload: Any,
    run: Callable[[UUID], Made[T]],
    again: Callable[[UUID], T],
) -> Once[T]:
    """Run a call of the session's principal, unless its key is known.

    `payload` are the arguments after schema parsing, without the key, as JSON values. `run` gets the id that the
    record of the call must take; `again` renders the answer from that record. Raises `StateConflict`
    (`idempotency_conflict`) for a known key with another payload; whatever `run` raises undoes the key, too.
    """
    principal = current_principal()
    digest = payload_digest(tool, payload)
    with transaction.atomic():
        lock_principal(principal.principal_id)
        record_id = uuid7()
        if not _take(principal, tool, key, digest, record_id):
            return Once(again(_known(principal, key, digest)), replayed=True)
        made = run(record_id)
        if made.expires_at is not None:
            _limit(principal, key, made.expires_at)
    return Once(made.answer, replayed=False)


def _take(principal: PrincipalIdentity, tool: str, key: str, digest: bytes, record_id: UUID) -> bool:
    """Write the key, in the place of one past its time; False where it is known."""
    owner = [principal.principal_id, key]
    cursors.run(_FORGET, owner)
    taken = cursors.run(_TAKE, [uuid7(), principal.workspace_id, *owner, tool, digest, record_id])
    return bool(taken.rowcount)


def _known(principal: PrincipalIdentity, key: str, digest: bytes) -> UUID:
    known = cursors.run(_KNOWN, [principal.principal_id, key]).fetchone()
    assert known is not None
    if bytes(known[0]) != digest:
        raise StateConflict("This key was used for another call", code="idempotency_conflict")
    return UUID(str(known[1]))


def _limit(principal: PrincipalIdentity, key: str, expires_at: datetime) -> None:
    cursors.run(_LIMIT, [expires_at, principal.principal_id, key])
