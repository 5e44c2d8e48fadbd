"""The audit log of several workspaces at once, newest first, without sorting all of it."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    # The log grows for years: an index is built beside its writers.
    atomic = False
    dependencies = [("core", "0002_row_policies_and_audit_functions")]

    operations = [
        AddIndexConcurrently(
            model_name="auditentry",
            index=models.Index(fields=["-recorded_at", "-id"], name="core_auditentry_newest_of_all"),
        ),
    ]
