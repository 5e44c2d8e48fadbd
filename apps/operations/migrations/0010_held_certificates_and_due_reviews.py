"""A certificate that a legal hold covers outlives its term; whoever must wait for a review may ask when it is due."""

from importlib import import_module

from django.db import migrations

from apps.core.db.operations import DefineFunction
from apps.core.db.rowpolicy import MAINTENANCE, STAFF

FORMER = import_module("apps.operations.migrations.0006_erasure_policies_and_functions")

# What is held is read under the lock of holds, and before the deletion's own snapshot.
PRUNE = """
DECLARE
  held uuid[] := ARRAY(SELECT public.operations_held_ids('operations.erasurecertificate'));
  count bigint;
BEGIN
  WITH due AS (
    SELECT c.id FROM public.operations_erasurecertificate c
    WHERE c.completed_at < least(cutoff, statement_timestamp()) - interval '1826 days' AND c.id <> ALL (held)
    ORDER BY c.id LIMIT greatest(1, least(batch, 5000)) FOR UPDATE SKIP LOCKED
  )
  DELETE FROM public.operations_erasurecertificate c USING due WHERE c.id = due.id;
  GET DIAGNOSTICS count = ROW_COUNT;
  RETURN count;
END
"""

# Reviews are seen by those who hold, run or audit them; who promotes or enrols is told the date alone.
DUE = """
  SELECT r.next_due_at FROM public.operations_retentionreview r
  WHERE r.workspace_id = workspace AND r.subject = wanted
    AND (r.decision <> 'shorten' OR r.approved_at IS NOT NULL)
    AND workspace = ANY (public.accounts_granted_workspaces(
      ARRAY['review_retention', 'operate_collection', 'audit', 'curate']))
  ORDER BY r.made_at DESC, r.id DESC LIMIT 1
"""


def prune(body, previous=None, **more):
    return DefineFunction(
        "operations_prune_certificates",
        "batch int, cutoff timestamptz",
        "bigint",
        body,
        execute=(MAINTENANCE,),
        previous=previous,
        **more,
    )


class Migration(migrations.Migration):
    dependencies = [("operations", "0009_row_policy_and_functions_of_reviews")]

    operations = [
        prune(PRUNE, prune(FORMER.PRUNE).sql(), language="plpgsql"),
        DefineFunction(
            "operations_review_due",
            "workspace uuid, wanted text",
            "timestamptz",
            DUE,
            volatility="STABLE",
            execute=(STAFF,),
        ),
    ]
