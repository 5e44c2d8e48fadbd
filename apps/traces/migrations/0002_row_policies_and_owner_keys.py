"""Row security of the feedback memory, and references that cannot cross owners."""

from django.db import migrations

from apps.core.db.operations import AddOwnerForeignKey, ApplyRowPolicy
from apps.core.db.rowpolicy import OwnerPolicy, granted

ALIVE = "expires_at > statement_timestamp()"
HELD = (
    f"({granted('review_retention')}) AND "
    "public.operations_held(ARRAY['traces.trace', 'traces.principal'], ARRAY[id, principal_id])"
)


def of_visible_trace(table):
    return (
        "EXISTS (SELECT FROM public.traces_trace t "
        f"WHERE t.principal_id = {table}.principal_id AND t.id = {table}.trace_id)"
    )


class Migration(migrations.Migration):
    dependencies = [
        ("traces", "0001_traces_sources_uses_activation"),
        ("operations", "0003_functions_of_holds_expiry_and_pruning"),
    ]

    operations = [
        ApplyRowPolicy(
            "traces",
            "Trace",
            OwnerPolicy(
                staff="view_traces", append_only=True, visible=ALIVE, staff_visible=f"({ALIVE}) OR ({HELD})"
            ),
        ),
        ApplyRowPolicy(
            "traces",
            "TraceSource",
            OwnerPolicy(staff="view_traces", append_only=True, visible=of_visible_trace("traces_source")),
        ),
        ApplyRowPolicy(
            "traces",
            "PathEdge",
            OwnerPolicy(
                staff="view_traces",
                append_only=True,
                visible=(
                    "EXISTS (SELECT FROM public.traces_source s WHERE s.principal_id = "
                    "traces_path_edge.principal_id AND s.id = traces_path_edge.source_row_id)"
                ),
            ),
        ),
        ApplyRowPolicy(
            "traces", "Use", OwnerPolicy(staff="view_traces", visible=of_visible_trace("traces_use"))
        ),
        ApplyRowPolicy("traces", "Activation", OwnerPolicy(staff="view_traces")),
        ApplyRowPolicy(
            "traces",
            "ActionReceipt",
            OwnerPolicy(
                staff="view_traces", append_only=True, visible=of_visible_trace("traces_action_receipt")
            ),
        ),
        AddOwnerForeignKey("traces", "TraceSource", "trace", "traces.Trace", "CASCADE"),
        AddOwnerForeignKey("traces", "PathEdge", "source_row", "traces.TraceSource", "CASCADE"),
        AddOwnerForeignKey("traces", "ActionReceipt", "trace", "traces.Trace", "CASCADE"),
        AddOwnerForeignKey("traces", "ActionReceipt", "confirmation", "traces.ActionReceipt", "CASCADE"),
        migrations.RunSQL(
            "ALTER TABLE traces_use ADD CONSTRAINT traces_use_source_owner_fk "
            "FOREIGN KEY (principal_id, trace_id, source_id) "
            "REFERENCES traces_source (principal_id, trace_id, source_id) ON DELETE CASCADE",
            "ALTER TABLE traces_use DROP CONSTRAINT traces_use_source_owner_fk",
        ),
    ]
