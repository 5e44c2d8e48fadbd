"""Row security of strengths and credits, and references that cannot cross owners."""

from django.db import migrations

from apps.core.db.operations import AddOwnerForeignKey, ApplyRowPolicy
from apps.core.db.rowpolicy import OwnerPolicy


def deferred_receipt_key(column):
    """A credit is written before the receipt that tells of it, in one transaction."""
    name = f"feedback_credit_{column}_owner_fk"
    return migrations.RunSQL(
        f"ALTER TABLE feedback_credit ADD CONSTRAINT {name} FOREIGN KEY (principal_id, {column}) "
        "REFERENCES traces_action_receipt (principal_id, id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED",
        f"ALTER TABLE feedback_credit DROP CONSTRAINT {name}",
    )


class Migration(migrations.Migration):
    dependencies = [
        ("feedback", "0001_edge_strengths_and_credits"),
        ("traces", "0002_row_policies_and_owner_keys"),
    ]

    operations = [
        ApplyRowPolicy("feedback", "EdgeStrength", OwnerPolicy(staff="view_traces")),
        ApplyRowPolicy("feedback", "Credit", OwnerPolicy(staff="view_traces")),
        AddOwnerForeignKey("feedback", "Credit", "trace", "traces.Trace", "CASCADE"),
        deferred_receipt_key("receipt_id"),
        deferred_receipt_key("reversed_by_id"),
    ]
