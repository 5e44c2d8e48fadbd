"""Idempotency of calls about a trace: a key lives exactly as long as its trace, and goes with it."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from apps.core import idempotency
from apps.traces.locks import share_policy
from apps.traces.models import ActionReceipt
from apps.traces.receipts import NewReceipt, render, write_receipt


def once_per_trace(*, tool: str, key: str, payload: Any, run: Callable[[UUID], NewReceipt]) -> dict[str, Any]:
    """Run a mutating call about a trace once, and answer with its action receipt, the same for every repetition.

    `run` gets the id of the receipt. Policy and principal are locked before anything is read. Raises
    `idempotency_conflict` for a known key with another payload, and whatever `run` raises; then no key is left.
    """

    def first(receipt_id: UUID) -> idempotency.Made[dict[str, Any]]:
        new = run(receipt_id)
        return idempotency.Made(render(write_receipt(new)), expires_at=new.expires_at)

    def again(receipt_id: UUID) -> dict[str, Any]:
        return render(ActionReceipt.objects.get(pk=receipt_id))

    share_policy()
    return idempotency.once(tool=tool, key=key, payload=payload, run=first, again=again).answer
