"""A kept receipt is seen past its trace's time and goes with its last keeper; an erased trace takes it at once."""

from importlib import import_module

from django.db import migrations

from apps.core.db.operations import AddOwnerForeignKey, ApplyRowPolicy, DefineFunction
from apps.core.db.rowpolicy import OwnerPolicy

FORMER = import_module("apps.retrieval.migrations.0003_row_policies_and_lifetime_of_receipts")
NOTHING = FORMER.NOTHING.replace("traces_after_delete", "traces_after_erasure")

VISIBLE = (
    "trace_id IS NULL OR EXISTS (SELECT FROM public.traces_trace t "
    "WHERE t.principal_id = retrieval_receipt.principal_id AND t.id = retrieval_receipt.trace_id) "
    "OR EXISTS (SELECT FROM public.retrieval_receipt_keeper k "
    "WHERE k.principal_id = retrieval_receipt.principal_id AND k.receipt_id = retrieval_receipt.id)"
)

KEPT = (
    "EXISTS (SELECT FROM public.retrieval_receipt_keeper k "
    "WHERE k.principal_id = r.principal_id AND k.receipt_id = r.id)"
)

GO_UNLESS_KEPT = f"""
  DELETE FROM public.retrieval_receipt r
  WHERE r.principal_id = owner AND r.id = ANY (receipts) AND NOT {KEPT}
"""

# Two statements, since one would not see its own deletions. Who calls this holds the principal's lock, so that no
# record comes to a receipt that goes.
LET_GO = f"""
DECLARE released uuid[];
BEGIN
  WITH gone AS (
    DELETE FROM public.retrieval_receipt_keeper k WHERE k.record_id = ANY (records) RETURNING k.receipt_id
  ) SELECT array_agg(DISTINCT gone.receipt_id) INTO released FROM gone;
  DELETE FROM public.retrieval_receipt r
  WHERE r.id = ANY (released) AND r.trace_id IS NULL AND NOT {KEPT};
END
"""


def go_with_traces(body: str, previous: str | None = None) -> DefineFunction:
    return DefineFunction(
        "traces_after_delete", "owner uuid, receipts uuid[]", "void", body, previous=previous
    )


class Migration(migrations.Migration):
    dependencies = [
        ("retrieval", "0004_keepers_of_receipts"),
        ("traces", "0006_erasure_takes_all"),
    ]

    operations = [
        ApplyRowPolicy("retrieval", "ReceiptKeeper", OwnerPolicy(staff="view_traces", append_only=True)),
        AddOwnerForeignKey("retrieval", "ReceiptKeeper", "receipt", "retrieval.Receipt", "CASCADE"),
        ApplyRowPolicy(
            "retrieval",
            "Receipt",
            OwnerPolicy(staff="view_traces", append_only=True, visible=VISIBLE),
            previous=OwnerPolicy(staff="view_traces", append_only=True, visible=FORMER.VISIBLE),
        ),
        go_with_traces(GO_UNLESS_KEPT, go_with_traces(FORMER.GO_WITH_TRACES).sql()),
        DefineFunction(
            "traces_after_erasure",
            "owner uuid, receipts uuid[]",
            "void",
            FORMER.GO_WITH_TRACES,
            previous=NOTHING,
        ),
        DefineFunction("retrieval_let_go", "records uuid[]", "void", LET_GO, language="plpgsql"),
    ]
