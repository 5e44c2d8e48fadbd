"""Idempotency of calls about a trace: a key lives exactly as long as its trace. (temporary)"""

import hashlib
from collections.abc import Callable
from typing import Any

from django.db import connection

from apps.core import canonical, clock
from apps.core.db.sessions import current_principal
from apps.core.problems import StateConflict
from apps.traces.models import ActionReceipt
from apps.traces.receipts import NewReceipt, render, write_receipt


def once_per_trace(*, tool: str, key: str, payload: Any, run: Callable[[], NewReceipt]) -> dict[str, Any]:
    me = current_principal()
    digest = hashlib.sha256(canonical.dumps({"tool": tool, "args": payload})).digest()
    with connection.cursor() as c:
        c.execute(
            "SELECT payload_sha256, receipt_id FROM core_idempotencykey WHERE principal_id=%s AND key=%s AND (expires_at IS NULL OR expires_at > statement_timestamp())",
            [me.principal_id, key],
        )
        row = c.fetchone()
    if row:
        if bytes(row[0]) != digest:
            raise StateConflict(code="idempotency_conflict")
        return render(ActionReceipt.objects.get(pk=row[1]))
    new = run()
    receipt = write_receipt(new)
    with connection.cursor() as c:
        c.execute("DELETE FROM core_idempotencykey WHERE principal_id=%s AND key=%s", [me.principal_id, key])
        c.execute(
            "INSERT INTO core_idempotencykey (workspace_id, principal_id, key, tool, payload_sha256, receipt_id, created_at, expires_at) VALUES (%s,%s,%s,%s,%s,%s,%s,%s)",
            [me.workspace_id, me.principal_id, key, tool, digest, receipt.id, clock.now(), new.expires_at],
        )
    return render(receipt)
