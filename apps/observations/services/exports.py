"""Exports by the owner: an unlabelled pool of its own queries, recorded by counts, hashes and dates."""

import hashlib
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models.functions import Now

from apps.core import audit, canonical, clock
from apps.core.db.sessions import current_principal, current_staff
from apps.core.problems import Forbidden, NotFound
from apps.core.reasons import check_reason
from apps.observations.exceptions import AlreadyAttested, NothingExported
from apps.observations.models import ExportRecord
from apps.observations.models.exports import Location
from apps.observations.selectors import exports

MODE = 0o600
CUSTODIAN = "owner"
ATTEST_GRANTS = ("operate_collection", "review_retention")


@dataclass(frozen=True, slots=True, repr=False)
class Export:
    """An envelope as canonical JSON. It holds texts, so it shows itself nowhere."""

    body: bytes
    count: int


def export(*, location: Location) -> Export:
    """The session's principal's envelope; an export record is written in the same transaction."""
    found = exports.candidates()
    envelope = {
        "version": exports.ENVELOPE_VERSION,
        "kind": exports.KIND,
        "exportedAt": clock.iso(clock.now()),
        "rawRecordRetentionDays": exports.RETENTION_DAYS,
        "expiryBasis": exports.EXPIRY_BASIS,
        "candidates": found,
    }
    body = canonical.dumps(envelope)
    _record(found, body, location)
    return Export(body, len(found))


def owner_digest() -> str:
    """What stands for the owner in records that outlive it."""
    text = f"observations.export:{current_principal().principal_id}"
    return hashlib.sha256(text.encode()).hexdigest()


def write_file(path: Path, body: bytes) -> None:
    """Write a new file, of mode 0600 from its first byte; none is left when writing fails. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(path, flags, MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def attest_deletion(*, export_id: UUID, reason: str) -> ExportRecord:
    """Say, as a person, that the copy was deleted; once, and for good. In the staff session of a holder of
    `operate_collection` or `review_retention`.

    `reason` is how one knows. Raises NotFound, Forbidden, NothingExported, AlreadyAttested.
    """
    staff = current_staff()
    check_reason(reason)
    row = ExportRecord.objects.filter(pk=export_id).first()
    if row is None:
        raise NotFound(code="unknown_export")
    _require_grant(row.workspace_id)
    if not row.candidates:
        raise NothingExported
    # One that another person writes now is waited for and then seen: the first stands.
    written = ExportRecord.objects.filter(pk=row.pk, attested_at=None).update(
        attested_at=Now(), attested_by_id=staff.user_id
    )
    if not written:
        raise AlreadyAttested
    row.refresh_from_db()
    audit.record(
        "observations.attest_deletion",
        row._meta.label_lower,
        row.pk,
        workspace=row.workspace_id,
        reason=reason,
        details={"candidates": row.candidates},
    )
    return row


def _require_grant(workspace_id: UUID) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT %s = ANY (accounts_granted_workspaces(%s))", [workspace_id, list(ATTEST_GRANTS)]
        )
        if not cursor.fetchone()[0]:
            raise Forbidden


def _record(found: list[dict[str, Any]], body: bytes, location: Location) -> None:
    deadlines = [datetime.fromisoformat(each["expires_at"]) for each in found]
    ExportRecord.objects.create(
        workspace_id=current_principal().workspace_id,
        candidates=len(found),
        envelope_sha256=hashlib.sha256(body).hexdigest(),
        earliest_expires_at=min(deadlines, default=None),
        latest_expires_at=max(deadlines, default=None),
        custodian=CUSTODIAN,
        location=location,
        owner_digest=owner_digest(),
    )
