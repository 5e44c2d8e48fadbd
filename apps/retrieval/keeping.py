"""Records that keep receipts past their trace's time; the law stands in `models`."""

from collections.abc import Sequence
from uuid import UUID

from django.db import connection

from apps.core.db.sessions import current_principal
from apps.core.ids import uuid7

KEEP = """
INSERT INTO retrieval_receipt_keeper (id, workspace_id, principal_id, receipt_id, kind, record_id)
SELECT k.id, %(workspace)s, %(principal)s, k.receipt_id, %(kind)s, %(record)s
FROM unnest(%(ids)s::uuid[], %(receipts)s::uuid[]) AS k (id, receipt_id)
ON CONFLICT (principal_id, receipt_id, record_id) DO NOTHING
"""


def keep_receipts(*, receipt_ids: Sequence[UUID], kind: str, record_id: UUID) -> None:
    """Have a record keep receipts of the session's principal, in the transaction that writes the record.

    `kind` is the lower label of the record's model. One statement, however many receipts. The record's table must
    call `retrieval_let_go` after deletions. Raises IntegrityError for a receipt that the principal has not.
    """
    owner = current_principal()
    wanted = list(dict.fromkeys(receipt_ids))
    with connection.cursor() as cursor:
        cursor.execute(
            KEEP,
            {
                "workspace": owner.workspace_id,
                "principal": owner.principal_id,
                "kind": kind,
                "record": record_id,
                "ids": [uuid7() for _ in wanted],
                "receipts": wanted,
            },
        )
