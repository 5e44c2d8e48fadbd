"""Receipts are their owner's, go with their traces, and are drawn by lot for replay."""

from django.db import migrations

from apps.core.db.operations import AddOwnerForeignKey, ApplyRowPolicy, DefineFunction
from apps.core.db.rowpolicy import OwnerPolicy

VISIBLE = (
    "trace_id IS NULL OR EXISTS (SELECT FROM public.traces_trace t "
    "WHERE t.principal_id = retrieval_receipt.principal_id AND t.id = retrieval_receipt.trace_id)"
)

# Called by what deletes traces, in the same transaction, with the receipts that they named.
GO_WITH_TRACES = """
  DELETE FROM public.retrieval_receipt r WHERE r.principal_id = owner AND r.id = ANY (receipts)
"""

NOTHING = (
    "CREATE OR REPLACE FUNCTION public.traces_after_delete(owner uuid, receipts uuid[]) RETURNS void "
    "LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS 'SELECT'"
)

# Half are the newest of each workspace, half those before random moments; each is one step in an index, however
# many there are.
SAMPLE = """
  SELECT drawn.workspace_id, drawn.principal_id, drawn.id
  FROM public.accounts_workspace w
  CROSS JOIN LATERAL (
    (SELECT r.workspace_id, r.principal_id, r.id FROM public.retrieval_receipt r
     WHERE r.workspace_id = w.id ORDER BY r.recorded_at DESC, r.id DESC LIMIT (least(size, 1000) + 1) / 2)
    UNION
    SELECT before.workspace_id, before.principal_id, before.id
    FROM (
      SELECT (SELECT r.recorded_at FROM public.retrieval_receipt r WHERE r.workspace_id = w.id
              ORDER BY r.recorded_at, r.id LIMIT 1) AS first,
             (SELECT r.recorded_at FROM public.retrieval_receipt r WHERE r.workspace_id = w.id
              ORDER BY r.recorded_at DESC, r.id DESC LIMIT 1) AS last) span
    CROSS JOIN LATERAL (
      SELECT span.first + random() * (span.last - span.first) AS moment
      FROM generate_series(1, least(size, 1000) / 2)) lot
    CROSS JOIN LATERAL (
      SELECT r.workspace_id, r.principal_id, r.id FROM public.retrieval_receipt r
      WHERE r.workspace_id = w.id AND r.recorded_at <= lot.moment
      ORDER BY r.recorded_at DESC, r.id DESC LIMIT 1) before) drawn
"""


class Migration(migrations.Migration):
    dependencies = [
        ("retrieval", "0002_retrieval_receipts"),
        ("traces", "0003_functions_of_retention"),
    ]

    operations = [
        ApplyRowPolicy(
            "retrieval",
            "Receipt",
            OwnerPolicy(staff="view_traces", append_only=True, visible=VISIBLE),
        ),
        AddOwnerForeignKey("retrieval", "Receipt", "trace", "traces.Trace", "SET NULL"),
        DefineFunction(
            "traces_after_delete", "owner uuid, receipts uuid[]", "void", GO_WITH_TRACES, previous=NOTHING
        ),
        DefineFunction(
            "retrieval_sample_receipts",
            "size int",
            "TABLE (workspace_id uuid, principal_id uuid, receipt_id uuid)",
            SAMPLE,
            execute=("memory_maintenance",),
        ),
    ]
