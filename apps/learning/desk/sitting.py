"""A sitting at the desk: which queue, opened when and why, what was skipped, what can be undone.

It lives in the user's signed session: ids only, never text.
"""

import hashlib
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.http import HttpRequest

from apps.core import clock

KEY = "labelling_desk"
LONGEST = timedelta(hours=8)
"""After which the reason is asked for again."""
UNDOABLE = 50


@dataclass(slots=True)
class Sitting:
    """An opened desk. `skipped` holds `receipt:node`; `undoable` (feedback id, receipt id), the last one last."""

    id: str
    user: int
    queue: str
    title: str
    principal_id: str
    receipts: list[str]
    blind: bool
    opened_at: str
    audit_id: str
    skipped: list[str] = field(default_factory=list)
    undoable: list[list[str]] = field(default_factory=list)
    saved: int = 0

    @property
    def over(self) -> bool:
        return clock.now() - datetime.fromisoformat(self.opened_at) > LONGEST

    def order(self, receipt_id: UUID, node_ids: list[UUID]) -> list[UUID]:
        """The nodes of a receipt as they are asked: by rank, or blind in an order that tells nothing of it."""
        if not self.blind:
            return node_ids
        return sorted(
            node_ids, key=lambda node: hashlib.sha256(f"{self.id}{receipt_id}{node}".encode()).digest()
        )

    def skip(self, receipt_id: UUID, node_id: UUID) -> None:
        name = f"{receipt_id}:{node_id}"
        if name not in self.skipped:
            self.skipped.append(name)

    def note_saved(self, feedback_id: UUID, receipt_id: UUID) -> None:
        """A repeated submission is one judgment, and one undo."""
        entry = [str(feedback_id), str(receipt_id)]
        if entry not in self.undoable:
            self.undoable = [*self.undoable, entry][-UNDOABLE:]
            self.saved += 1


def keep(request: HttpRequest, sitting: Sitting) -> None:
    request.session[KEY] = asdict(sitting)


def running(request: HttpRequest) -> Sitting | None:
    """The user's open sitting; None without one, and past its hours."""
    kept: dict[str, Any] | None = request.session.get(KEY)
    if kept is None:
        return None
    sitting = Sitting(**kept)
    return None if sitting.over or sitting.user != request.user.pk else sitting


def close(request: HttpRequest) -> None:
    request.session.pop(KEY, None)
