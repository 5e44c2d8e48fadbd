"""The audit log: who did what, chained by hash, without gaps, one chain a workspace and one for the installation.

An entry is appended in the transaction of the act, by a function of the database that takes the actor from the
session. Appending holds the chain until the transaction ends, so record last. Entries hold no text: objects are
named and hashed, reasons pass the text filter, details are numbers, names and ids.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any
from uuid import UUID

import structlog
from django.db import connection

from apps.core import canonical, clock
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import SessionError, acting_staff, current
from apps.core.ids import uuid7
from apps.core.models.audit import DAYS_KEPT
from apps.core.reasons import check_reason
from apps.core.text import redact, refused_by

MAX_DETAILS = 8192
"""Bytes of the details of an entry."""

_ACTION = re.compile(r"[a-z_]+(\.[a-z_]+)+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class _Session(Enum):
    WORKSPACE = "the workspace of the session's principal; the installation where there is none"


@dataclass(frozen=True, slots=True)
class ChainState:
    """What verification found. `broken` is the first sequence that does not follow; None when all do."""

    workspace_id: UUID | None
    entries: int
    through: int
    broken: int | None


def record(
    action: str,
    object_type: str,
    object_id: object,
    *,
    workspace: UUID | _Session | None = _Session.WORKSPACE,
    reason: str = "",
    before: Any = None,
    after: Any = None,
    details: Mapping[str, Any] | None = None,
) -> UUID:
    """Append an entry in the running session and return its id.

    `action` is dotted (`traces.reveal_query`), `object_type` a model's lower label. `workspace` names the chain:
    by default that of the principal, in a staff session the installation's (None). `before` and `after` are JSON
    values, of which the checksum is kept, or checksums. Raises `InvalidRequest` for a reason of staff that may not
    be kept; an application's is left out instead. Raises `SessionError` outside of a session.
    """
    identity = current()
    if identity is None and not _is_owner():
        raise SessionError("an audit entry needs a session, which says who acts")
    if not _ACTION.fullmatch(action):
        raise ValueError("an action has a dotted name")
    if isinstance(workspace, _Session):
        workspace = identity.workspace_id if isinstance(identity, PrincipalIdentity) else None
    entry = uuid7()
    named = [entry, workspace, action, object_type, str(object_id)]
    told = [_kept_reason(reason), _hash(before), _hash(after), _details(details or {}), _request_id()]
    with connection.cursor() as cursor:
        cursor.execute("SELECT core_audit_append(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)", [*named, *told])
    return entry


def verify() -> list[ChainState]:
    """Recompute every chain and note how far it is whole. In a maintenance session; nothing is read out."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT workspace_id, entries, through, broken FROM core_audit_verify()")
        return [ChainState(*row) for row in cursor.fetchall()]


def prune(*, cutoff: datetime | None = None, batch: int = 1000, held: Sequence[UUID] = ()) -> int:
    """Delete at most `batch` entries recorded before `cutoff` (never younger than 1826 days), oldest first, and
    keep the last hash as anchor. A chain is not cut past an entry in `held`. In a maintenance session; returns how
    many went."""
    cutoff = cutoff or clock.now() - timedelta(days=DAYS_KEPT)
    with connection.cursor() as cursor:
        cursor.execute("SELECT core_audit_prune(%s, %s, %s::uuid[])", [cutoff, batch, list(held)])
        return int(cursor.fetchone()[0])


def _is_owner() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT session_user = 'memory_owner'")
        return bool(cursor.fetchone()[0])


def _kept_reason(reason: str) -> str:
    if isinstance(current(), PrincipalIdentity) and acting_staff() is None:
        return "" if refused_by(reason) is not None else reason
    return check_reason(reason, required=False)


def _request_id() -> str:
    """The id that groups all entries of a request, as the logs have it."""
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))[:64]


def _hash(value: Any) -> str | None:
    if value is None or (isinstance(value, str) and _SHA256.fullmatch(value)):
        return value
    return canonical.checksum(value)


def _details(details: Mapping[str, Any]) -> str:
    text = json.dumps(_redacted(details), ensure_ascii=False, allow_nan=False)
    if len(text.encode()) > MAX_DETAILS:
        raise ValueError("details of an audit entry are few")
    return text


def _redacted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _redacted(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_redacted(inner) for inner in value]
    return value if isinstance(value, int | float | None) else redact(str(value))
