"""Imported receipts are kept as long as the gate policy in effect says, also those that came under another one."""

from django.db import migrations

from apps.core.db.operations import DefineFunction

# What is hidden already stays so: its time was over under the term that it had.
REDATE = """
  UPDATE public.retrieval_prme_receipt r SET expires_at = r.imported_at + make_interval(days => term.days)
  FROM (SELECT w.id, public.feedback_retention_days(w.id) AS days FROM public.accounts_workspace w) term
  WHERE r.workspace_id = term.id AND r.expires_at > statement_timestamp()
    AND r.expires_at <> r.imported_at + make_interval(days => term.days)
"""


class Migration(migrations.Migration):
    dependencies = [
        ("retrieval", "0009_default_of_all_channels"),
        ("feedback", "0005_lifetime_of_judgments_and_citations"),
    ]

    operations = [
        DefineFunction("retrieval_redate_prme", "", "void", REDATE, execute=("memory_maintenance",)),
    ]
