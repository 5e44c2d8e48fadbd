"""Whose receipts are to be replayed, for the command that replays them all; it reads them as each principal."""

from django.db import migrations

from apps.core.db.operations import DefineFunction

OWNERS = """
  SELECT p.id FROM public.accounts_principal p
  WHERE (workspace IS NULL OR p.workspace_id = workspace) AND (wanted IS NULL OR p.subject = wanted)
    AND p.disabled_at IS NULL
    AND (after IS NULL OR p.id > after)
    AND (EXISTS (SELECT FROM public.retrieval_receipt r WHERE r.principal_id = p.id)
      OR EXISTS (SELECT FROM public.retrieval_prme_receipt r WHERE r.principal_id = p.id))
  ORDER BY p.id LIMIT greatest(1, least(most, 1000))
"""


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0007_row_policies_and_expiry_of_imported_receipts")]

    operations = [
        DefineFunction(
            "retrieval_receipt_owners",
            "workspace uuid, wanted text, after uuid, most int",
            "SETOF uuid",
            OWNERS,
            volatility="STABLE",
            execute=("memory_maintenance",),
        )
    ]
