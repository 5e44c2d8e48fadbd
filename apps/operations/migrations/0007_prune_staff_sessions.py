"""Sessions of staff that have run out go with everything else that is kept for a term."""

from django.db import migrations

from apps.core.db.operations import DefineFunction

PRUNE = """
  WITH due AS (
    SELECT s.session_key FROM public.django_session s
    WHERE s.expire_date < least(cutoff, statement_timestamp())
    ORDER BY s.session_key LIMIT greatest(1, least(batch, 5000)) FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM public.django_session s USING due WHERE s.session_key = due.session_key RETURNING 1
  ) SELECT count(*) FROM gone
"""


class Migration(migrations.Migration):
    dependencies = [
        ("operations", "0006_erasure_policies_and_functions"),
        ("sessions", "0001_initial"),
    ]

    operations = [
        DefineFunction(
            "operations_prune_staff_sessions",
            "batch int, cutoff timestamptz",
            "bigint",
            PRUNE,
            execute=("memory_maintenance",),
        ),
    ]
