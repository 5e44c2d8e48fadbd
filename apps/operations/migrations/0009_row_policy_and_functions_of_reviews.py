"""Who sees and decides retention reviews; what of them may change; when they go."""

from django.db import migrations

from apps.core.db.operations import AddTrigger, ApplyRowPolicy, DefineFunction
from apps.core.db.rowpolicy import APP, MAINTENANCE, STAFF, CustomPolicy, granted

READ = granted("review_retention", "operate_collection", "audit")
WRITE = granted("review_retention")
USER = "(SELECT nullif(current_setting('memory.user_id', true), '')::int)"

FIXED = """
BEGIN
  IF to_jsonb(NEW) - '{approved_by_id,approved_at,carried_out_at}'::text[]
     <> to_jsonb(OLD) - '{approved_by_id,approved_at,carried_out_at}'::text[]
     OR (OLD.approved_at IS NOT NULL AND (NEW.approved_at, NEW.approved_by_id)
         IS DISTINCT FROM (OLD.approved_at, OLD.approved_by_id))
     OR (OLD.carried_out_at IS NOT NULL AND NEW.carried_out_at IS DISTINCT FROM OLD.carried_out_at)
     OR (NEW.carried_out_at IS NOT NULL AND OLD.approved_at IS NULL) THEN
    RAISE EXCEPTION 'retention_review_is_fixed' USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END
"""

# The newest of each workspace and subject stays: it says when the next one is due.
PRUNE = """
  WITH due AS (
    SELECT r.id FROM public.operations_retentionreview r
    WHERE r.made_at < least(cutoff, statement_timestamp()) - interval '1826 days'
      AND EXISTS (SELECT FROM public.operations_retentionreview later
                  WHERE later.workspace_id = r.workspace_id AND later.subject = r.subject
                    AND later.made_at > r.made_at)
    ORDER BY r.id LIMIT greatest(1, least(batch, 5000)) FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM public.operations_retentionreview r USING due WHERE r.id = due.id RETURNING 1
  ) SELECT count(*) FROM gone
"""


class Migration(migrations.Migration):
    dependencies = [("operations", "0008_retention_reviews")]

    operations = [
        ApplyRowPolicy(
            "operations",
            "RetentionReview",
            CustomPolicy(
                rules=(
                    ("app", "ALL", APP, "true", "true"),
                    ("staff", "SELECT", STAFF, READ, None),
                    ("staff_decide", "INSERT", STAFF, None, f"({WRITE}) AND made_by_id = {USER}"),
                    ("staff_approve", "UPDATE", STAFF, WRITE, f"({WRITE}) AND approved_by_id = {USER}"),
                ),
                allow={APP: "rw", STAFF: "raw"},
            ),
        ),
        DefineFunction("operations_review_fixed", "", "trigger", FIXED, language="plpgsql"),
        AddTrigger(
            "operations",
            "RetentionReview",
            "operations_review_fixed",
            "BEFORE UPDATE",
            "operations_review_fixed",
        ),
        DefineFunction(
            "operations_prune_reviews",
            "batch int, cutoff timestamptz",
            "bigint",
            PRUNE,
            execute=(MAINTENANCE,),
        ),
    ]
