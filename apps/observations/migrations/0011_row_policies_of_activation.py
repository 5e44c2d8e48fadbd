"""Row security of activation, how many records a workspace has left, and the term after which runs go."""

from django.db import migrations

from apps.core.db.operations import ApplyRowPolicy, DefineFunction
from apps.core.db.rowpolicy import API, MAINTENANCE, STAFF, WORKSPACE, CustomPolicy, granted

OPERATES = granted("operate_collection")
DECIDES = granted("operate_collection", "review_retention")
WATCHES = granted("operate_collection", "review_retention", "audit")
HERE = f"workspace_id = {WORKSPACE}"
POSTABLE = "item IN ('A1', 'A5', 'B7', 'B8', 'B9') AND part = 'machine'"

RUN = CustomPolicy(
    rules=(
        ("api", "SELECT", API, HERE, None),
        ("staff", "SELECT", STAFF, WATCHES, None),
        ("staff_open", "INSERT", STAFF, None, OPERATES),
        ("staff_decide", "UPDATE", STAFF, DECIDES, DECIDES),
    ),
    allow={API: "r", STAFF: "raw"},
)
EVIDENCE = CustomPolicy(
    rules=(
        ("api", "SELECT", API, f"({HERE}) AND {POSTABLE}", None),
        ("api_post", "INSERT", API, None, f"({HERE}) AND {POSTABLE}"),
        ("staff", "SELECT", STAFF, WATCHES, None),
        ("staff_record", "INSERT", STAFF, None, DECIDES),
    ),
    allow={API: "ra", STAFF: "ra"},
)

# Expired rows, too: row policies hide them from staff, and a zero that hides a backlog proves nothing.
REMAINING = f"""
  SELECT count(*) FROM public.observations_observation o
  WHERE o.workspace_id = wanted AND o.{DECIDES}
"""

PRUNE = """
  WITH due AS (
    SELECT r.id FROM public.observations_activation_run r
    WHERE r.opened_at < least(cutoff, statement_timestamp()) - interval '1826 days'
      AND r.state IN ('draft', 'provisioned', 'ready', 'shutdown_verified', 'emptied')
      AND NOT EXISTS (
        SELECT FROM public.observations_evidence e WHERE e.run_id = r.id
          AND e.recorded_at >= least(cutoff, statement_timestamp()) - interval '1826 days')
    ORDER BY r.id LIMIT greatest(1, least(batch, 5000)) FOR UPDATE SKIP LOCKED
  ), evidence AS (
    DELETE FROM public.observations_evidence e USING due WHERE e.run_id = due.id RETURNING 1
  ), gone AS (
    DELETE FROM public.observations_activation_run r USING due WHERE r.id = due.id RETURNING 1
  ) SELECT (SELECT count(*) FROM evidence) + (SELECT count(*) FROM gone)
"""


class Migration(migrations.Migration):
    dependencies = [("observations", "0010_activation_runs_and_evidence")]

    operations = [
        ApplyRowPolicy("observations", "ActivationRun", RUN),
        ApplyRowPolicy("observations", "Evidence", EVIDENCE),
        DefineFunction(
            "observations_remaining",
            "wanted uuid",
            "bigint",
            REMAINING,
            volatility="STABLE",
            execute=(STAFF,),
        ),
        DefineFunction(
            "observations_prune_activations",
            "batch int, cutoff timestamptz",
            "bigint",
            PRUNE,
            execute=(MAINTENANCE,),
        ),
    ]
