"""Imported receipts are their owner's, are hidden from their time on, and go with their label records."""

from django.db import migrations

from apps.core.db.operations import AddOwnerForeignKey, ApplyRowPolicy, DefineFunction
from apps.core.db.rowpolicy import OwnerPolicy

ALIVE = "expires_at > statement_timestamp()"
HELD = (
    "(workspace_id = ANY ((SELECT public.accounts_granted_workspaces(ARRAY['review_retention']))::uuid[])) AND "
    "public.operations_held(ARRAY['retrieval.prmereceipt', 'traces.principal'], ARRAY[id, principal_id])"
)
OF_VISIBLE_RECEIPT = (
    "EXISTS (SELECT FROM public.retrieval_prme_receipt r "
    "WHERE r.principal_id = retrieval_prme_label.principal_id AND r.id = retrieval_prme_label.receipt_id)"
)

HOLD_KINDS = "ARRAY['retrieval.prmereceipt', 'traces.principal']"
FREE = f"NOT public.operations_held({HOLD_KINDS}, ARRAY[r.id, r.principal_id])"

EXPIRE = f"""
BEGIN
  PERFORM public.operations_hold_lock({HOLD_KINDS});
  DELETE FROM public.retrieval_prme_receipt gone WHERE gone.id IN (
    SELECT r.id FROM public.retrieval_prme_receipt r
    WHERE r.expires_at <= least(cutoff, statement_timestamp()) AND {FREE}
    ORDER BY r.expires_at LIMIT greatest(1, least(batch, 1000)) FOR UPDATE SKIP LOCKED);
  GET DIAGNOSTICS receipts = ROW_COUNT;
  RETURN NEXT;
END
"""

STATUS = f"""
  SELECT count(*), coalesce(extract(epoch FROM statement_timestamp() - min(r.expires_at))::float8, 0)
  FROM public.retrieval_prme_receipt r WHERE r.expires_at <= statement_timestamp() AND {FREE}
"""


class Migration(migrations.Migration):
    dependencies = [
        ("retrieval", "0006_imported_receipts_and_labels"),
        ("operations", "0003_functions_of_holds_expiry_and_pruning"),
    ]

    operations = [
        ApplyRowPolicy(
            "retrieval",
            "PrmeReceipt",
            OwnerPolicy(
                staff="view_traces", append_only=True, visible=ALIVE, staff_visible=f"({ALIVE}) OR ({HELD})"
            ),
        ),
        ApplyRowPolicy(
            "retrieval",
            "PrmeLabelRecord",
            OwnerPolicy(staff="view_traces", append_only=True, visible=OF_VISIBLE_RECEIPT),
        ),
        AddOwnerForeignKey("retrieval", "PrmeLabelRecord", "receipt", "retrieval.PrmeReceipt", "CASCADE"),
        DefineFunction(
            "retrieval_expire_prme",
            "batch int, cutoff timestamptz",
            "TABLE (receipts bigint)",
            EXPIRE,
            language="plpgsql",
            execute=("memory_maintenance",),
        ),
        DefineFunction(
            "retrieval_prme_status",
            "",
            "TABLE (expired_receipts bigint, oldest_overdue_seconds float8)",
            STATUS,
            volatility="STABLE",
            execute=("memory_monitor",),
        ),
    ]
