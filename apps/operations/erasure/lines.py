"""The erasure file: one line an erasure, outside the database and its backups.

After a restore the lines say what must not come back. A line holds ids, no text, and its own checksum. The file
has mode 0600; writers append under a lock and wait for the disk. A damaged line is an error, never skipped.
"""

import fcntl
import json
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.core import canonical, clock

MODE = 0o600


class DamagedLine(ValueError):
    """A line of the erasure file cannot be read or does not match its checksum. Says which one."""

    def __init__(self, number: int) -> None:
        super().__init__(f"line {number} of the erasure file is damaged")
        self.number = number


@dataclass(frozen=True, slots=True)
class ErasureLine:
    """What one erasure was. `object_type` and `object_id` name the one object of the scope `one`.

    withdraw: the erasure ended an enrolment, too, and does so again when it is replayed.
    """

    certificate: UUID
    fence_at: datetime
    scope: str
    workspace: UUID
    principal: UUID
    object_type: str | None = None
    object_id: UUID | None = None
    withdraw: bool = False

    def document(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "certificate": str(self.certificate),
            "fence_at": clock.iso(self.fence_at),
            "scope": self.scope,
            "workspace": str(self.workspace),
            "principal": str(self.principal),
            "object_type": self.object_type,
            "object_id": str(self.object_id) if self.object_id else None,
        }
        if self.withdraw:
            body["withdraw"] = True
        return body | {"checksum": canonical.checksum(body)}


def path() -> Path:
    return Path(settings.ERASURE_FILE)


def append(line: ErasureLine) -> None:
    """Write the line and wait until it is on disk; nothing when the file has it already. Raises OSError.

    Raises DamagedLine where the file cannot be trusted to tell.
    """
    descriptor = os.open(path(), os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, MODE)
    with os.fdopen(descriptor, "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if any(known.certificate == line.certificate for known in _parse(file.read())):
            return
        file.write(canonical.dumps(line.document()) + b"\n")
        file.flush()
        os.fsync(file.fileno())


def read(file: Path | None = None) -> list[ErasureLine]:
    """All lines, oldest first. Raises DamagedLine, OSError."""
    return _parse((file or path()).read_bytes())


def _parse(content: bytes) -> list[ErasureLine]:
    if content and not content.endswith(b"\n"):
        raise DamagedLine(content.count(b"\n") + 1)
    return [_line(number, text) for number, text in enumerate(content.splitlines(), 1)]


def _line(number: int, text: bytes) -> ErasureLine:
    try:
        document = json.loads(text)
        checksum = document.pop("checksum")
        if checksum != canonical.checksum(document):
            raise DamagedLine(number)
        return ErasureLine(
            certificate=UUID(document["certificate"]),
            fence_at=datetime.fromisoformat(document["fence_at"]),
            scope=document["scope"],
            workspace=UUID(document["workspace"]),
            principal=UUID(document["principal"]),
            object_type=document["object_type"],
            object_id=UUID(document["object_id"]) if document["object_id"] else None,
            withdraw=document.get("withdraw", False) is True,
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DamagedLine(number) from error
