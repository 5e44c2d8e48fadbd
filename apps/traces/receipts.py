"""Action receipts: the stored answers to mutating calls, and the rendering of one again."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.core import canonical, clock
from apps.core.db.sessions import acting_staff, current_principal
from apps.core.text import refused_by
from apps.traces.models import ActionReceipt, Actor, ReceiptKind


@dataclass(frozen=True, slots=True)
class NewReceipt:
    """A receipt to be written. `body` is the answer without its reason."""

    id: UUID
    trace_id: UUID
    kind: ReceiptKind
    recorded_at: datetime
    body: Mapping[str, Any]
    policy_id: UUID
    expires_at: datetime
    reason: str | None = None
    confirmation_id: UUID | None = None
    non_applied_reason: str | None = None


def write_receipt(new: NewReceipt) -> ActionReceipt:
    """Append a receipt in the session of its principal. A reason that the filter refuses is not kept."""
    principal = current_principal()
    keeps_reason = new.reason is not None and refused_by(new.reason) is None
    return ActionReceipt.objects.create(
        id=new.id,
        workspace_id=principal.workspace_id,
        principal_id=principal.principal_id,
        trace_id=new.trace_id,
        kind=new.kind,
        recorded_at=new.recorded_at,
        actor=Actor.STAFF if acting_staff() else Actor.PRINCIPAL,
        reason=new.reason if keeps_reason else None,
        confirmation_id=new.confirmation_id,
        non_applied_reason=new.non_applied_reason,
        policy_id=new.policy_id,
        body=canonical.dumps(dict(new.body)).decode(),
    )


def head(*, receipt_id: UUID, trace_id: UUID, at: datetime) -> dict[str, Any]:
    """The members that every receipt begins with."""
    return {"receipt_id": str(receipt_id), "trace_id": str(trace_id), "timestamp": clock.iso(at)}


def render(receipt: ActionReceipt) -> dict[str, Any]:
    """The answer of a receipt as it was first given; the reason only as far as it is kept."""
    body: dict[str, Any] = json.loads(receipt.body)
    if receipt.kind != ReceiptKind.USE:
        body["reason"] = receipt.reason
    return body
