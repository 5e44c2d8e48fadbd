"""Exports by the owner: an unlabelled pool of its own queries, recorded by counts, hashes and dates."""

import hashlib
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from apps.core import canonical, clock
from apps.core.db.sessions import current_principal
from apps.observations.models import ExportRecord
from apps.observations.models.exports import Location
from apps.observations.selectors import exports

MODE = 0o600
CUSTODIAN = "owner"


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
