"""Publishing of stored policies.

The law: a version is only ever appended, takes effect now or later and after the one before, is based on the
version that its author saw, and is published by who holds the grant of every field that it changes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from psycopg.errors import CheckViolation, UniqueViolation

from apps.core import audit, canonical
from apps.core.db.locks import lock_policies
from apps.core.db.sessions import current_staff
from apps.core.ids import uuid7
from apps.core.models import StoredPolicy
from apps.core.models.policies import READERS
from apps.core.problems import (
    Forbidden,
    InvalidRequest,
    NotFound,
    Problem,
    StaleVersion,
    StateConflict,
    VersionRequired,
)
from apps.core.reasons import check_reason
from apps.core.schemas import StrictModel, parse, pointer

from .kinds import Change, FieldChange, Kind, kind_named
from .selectors import document_of, followed, newest_version


@dataclass(frozen=True, slots=True)
class PolicyPreview:
    """What publishing would do. `version` is the hash to send as If-Match; `refusal` is None where it may go."""

    version: str
    change: Change
    refusal: Problem | None
    effect: Any


def policy_hash(kind: str, document: Any) -> str:
    """SHA-256 over canonical JSON of kind and document."""
    return canonical.checksum({"kind": kind, "document": document})


def stored_document(model: StrictModel) -> dict[str, Any]:
    """The document as it is stored: JSON values, every field written out."""
    return model.model_dump(mode="json")


def publish_policy(
    *,
    workspace_id: UUID | None,
    kind: str,
    document: Any,
    if_match: str | None,
    reason: str,
    effective_from: datetime | None = None,
) -> StoredPolicy:
    """Append a version in the staff session of its author, with an audit entry.

    `if_match` is the hash of the version that the author saw (the workspace's newest; the default while it has
    none). Raises NotFound for a workspace of others or an unknown kind, Forbidden without the grant of a changed
    field, InvalidRequest, VersionRequired, StaleVersion, StateConflict, and what the kind refuses.
    """
    staff = current_staff()
    found = kind_named(kind)
    _require_sight(workspace_id)
    check_reason(reason)
    after = parse(found.model, document)
    with transaction.atomic():
        _lock(found)
        before = followed(workspace_id, kind)
        if if_match is None:
            raise VersionRequired
        if if_match != before.hash:
            raise StaleVersion(version=before.hash)
        change = _change(workspace_id, before, after, effective_from)
        _require(found, change)
        found.refusal(change)
        row = _append(found, change, staff.user_id, reason)
        _record(change, before, row)
    return row


def preview_policy(
    *, workspace_id: UUID | None, kind: str, document: Any, effective_from: datetime | None = None
) -> PolicyPreview:
    """What publishing the document would change and do; nothing is written. Raises what the document itself gets
    wrong; what the state or the grants refuse is told in the preview."""
    current_staff()
    found = kind_named(kind)
    _require_sight(workspace_id)
    after = parse(found.model, document)
    with transaction.atomic():
        _lock(found)
        before = followed(workspace_id, kind)
        change = _change(workspace_id, before, after, effective_from)
        try:
            _require(found, change)
            found.refusal(change)
        except Problem as problem:
            return PolicyPreview(before.hash, change, problem, None)
        return PolicyPreview(before.hash, change, None, found.preview(change))


def differences(before: Any, after: Any, path: tuple[str | int, ...] = ()) -> Iterator[FieldChange]:
    """Leaves that differ between two JSON values; lists are leaves."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted(before.keys() | after.keys()):
            yield from differences(before.get(name), after.get(name), (*path, name))
    elif canonical.dumps(before) != canonical.dumps(after):
        yield FieldChange(pointer(*path), before, after)


def _lock(kind: Kind) -> None:
    if kind.lock is not None:
        kind.lock()
    lock_policies(kind.name)


def _change(
    workspace_id: UUID | None, before: StoredPolicy, after: StrictModel, effective_from: datetime | None
) -> Change:
    return Change(
        workspace_id=workspace_id,
        before=document_of(before),
        after=after,
        fields=tuple(differences(before.document, stored_document(after))),
        effective_from=effective_from,
    )


def _require(kind: Kind, change: Change) -> None:
    """Grants of all changed fields; something changes; the time is one that a next version may have."""
    pointers = [field.pointer for field in change.fields]
    for where in pointers or [""]:
        if not _holds(change.workspace_id, kind.grant_for(where) if where else kind.permission):
            raise Forbidden("Your grants do not cover this field", pointer=where)
    newest = newest_version(change.workspace_id, kind.name)
    if newest is not None and not pointers:
        raise StateConflict("This is the newest version already", code="policy_unchanged")
    if change.effective_from is not None and not kind.scheduled:
        raise InvalidRequest("This kind takes effect at once", pointer="/effective_from")
    now = _database_time()
    if change.effective_from is not None and change.effective_from < now:
        raise InvalidRequest("A policy takes effect now or later", pointer="/effective_from")
    if newest is not None and (change.effective_from or now) <= newest.effective_from:
        raise StateConflict("A later version is published already", code="policy_scheduled")


def _append(kind: Kind, change: Change, author: int, reason: str) -> StoredPolicy:
    newest = newest_version(change.workspace_id, kind.name)
    document = stored_document(change.after)
    times = {"effective_from": change.effective_from} if change.effective_from is not None else {}
    try:
        with transaction.atomic():
            return StoredPolicy.objects.create(
                id=uuid7(),
                workspace_id=change.workspace_id,
                kind=kind.name,
                version=newest.version + 1 if newest else 1,
                document=document,
                author_id=author,
                reason=reason,
                hash=policy_hash(kind.name, document),
                **times,
            )
    except IntegrityError as error:
        raise _refused(error) from None


def _record(change: Change, before: StoredPolicy, row: StoredPolicy) -> None:
    changed = [field.pointer for field in change.fields]
    audit.record(
        "core.publish_policy",
        "core.storedpolicy",
        row.pk,
        workspace=change.workspace_id,
        reason=row.reason,
        before=before.hash,
        after=row.hash,
        details={"kind": row.kind, "version": row.version, "changed": changed},
    )


def _refused(error: IntegrityError) -> Problem:
    """What the database, the last defence, refused; in our words."""
    cause = error.__cause__
    name = cause.diag.constraint_name if isinstance(cause, CheckViolation | UniqueViolation) else None
    if name == "core_storedpolicy_not_past":
        return InvalidRequest("A policy takes effect now or later", pointer="/effective_from")
    if name in {"core_storedpolicy_in_order", "core_storedpolicy_version_key"}:
        return StaleVersion()
    return InvalidRequest("A value is outside of what the platform promises", constraint=name or "")


def _require_sight(workspace_id: UUID | None) -> None:
    """Another's workspace is as one that does not exist."""
    if workspace_id is not None and not _granted(workspace_id, list(READERS)):
        raise NotFound(code="unknown_workspace")


def _holds(workspace_id: UUID | None, grant: str) -> bool:
    """Whether the session's user holds the grant; the default belongs to superusers."""
    if workspace_id is not None:
        return _granted(workspace_id, [grant])
    with connection.cursor() as cursor:
        cursor.execute("SELECT accounts_is_superuser()")
        return bool(cursor.fetchone()[0])


def _granted(workspace_id: UUID, grants: list[str]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s = ANY (accounts_granted_workspaces(%s))", [workspace_id, grants])
        return bool(cursor.fetchone()[0])


def _database_time() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        return cursor.fetchone()[0]  # type: ignore[no-any-return]
