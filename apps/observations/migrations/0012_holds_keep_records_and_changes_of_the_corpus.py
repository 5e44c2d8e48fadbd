"""Export records and evidence that a legal hold covers outlive their terms; a review is told what changed in the corpus."""

from importlib import import_module

from django.db import migrations

from apps.core.db.operations import DefineFunction
from apps.core.db.rowpolicy import MAINTENANCE, STAFF

EXPORTS = import_module("apps.observations.migrations.0003_functions_and_triggers_of_the_journal")
RUNS = import_module("apps.observations.migrations.0011_row_policies_of_activation")

# What is held is read under the lock of holds, and before the deletion's own snapshot.
PRUNE_EXPORTS = """
DECLARE
  held uuid[] := ARRAY(SELECT public.operations_held_ids('observations.exportrecord'));
  count bigint;
BEGIN
  WITH due AS (
    SELECT x.id FROM public.observations_export_record x
    WHERE x.exported_at < least(cutoff, statement_timestamp()) - interval '400 days' AND x.id <> ALL (held)
    ORDER BY x.id LIMIT greatest(1, least(batch, 5000)) FOR UPDATE SKIP LOCKED
  )
  DELETE FROM public.observations_export_record x USING due WHERE x.id = due.id;
  GET DIAGNOSTICS count = ROW_COUNT;
  RETURN count;
END
"""

# A run goes with all of its evidence, so that one held row keeps the whole of it.
PRUNE_RUNS = """
DECLARE
  held uuid[] := ARRAY(SELECT public.operations_held_ids('observations.evidence'));
  count bigint;
BEGIN
  WITH due AS (
    SELECT r.id FROM public.observations_activation_run r
    WHERE r.opened_at < least(cutoff, statement_timestamp()) - interval '1826 days'
      AND r.state IN ('draft', 'provisioned', 'ready', 'shutdown_verified', 'emptied')
      AND NOT EXISTS (
        SELECT FROM public.observations_evidence e WHERE e.run_id = r.id
          AND (e.recorded_at >= least(cutoff, statement_timestamp()) - interval '1826 days' OR e.id = ANY (held)))
    ORDER BY r.id LIMIT greatest(1, least(batch, 5000)) FOR UPDATE SKIP LOCKED
  ), evidence AS (
    DELETE FROM public.observations_evidence e USING due WHERE e.run_id = due.id RETURNING 1
  ), gone AS (
    DELETE FROM public.observations_activation_run r USING due WHERE r.id = due.id RETURNING 1
  ) SELECT (SELECT count(*) FROM evidence) + (SELECT count(*) FROM gone) INTO count;
  RETURN count;
END
"""

# Numbers alone, of passages: how many stand, how many of them came since, and what was put away. A passage whose text
# changed is a new one, and a deleted one leaves nothing to count.
CORPUS = """
  SELECT count(*) FILTER (WHERE n.archived_at IS NULL AND n.superseded_at IS NULL),
    count(*) FILTER (WHERE n.created_at >= since),
    count(*) FILTER (WHERE n.archived_at >= since OR n.superseded_at >= since)
  FROM public.graph_node n
  WHERE n.workspace_id = workspace AND EXISTS (SELECT FROM public.graph_passage p WHERE p.node_id = n.id)
    AND workspace = ANY (public.accounts_granted_workspaces(ARRAY['review_retention']))
"""


def prune(name, body, previous=None, **more):
    return DefineFunction(
        f"observations_prune_{name}",
        "batch int, cutoff timestamptz",
        "bigint",
        body,
        execute=(MAINTENANCE,),
        previous=previous,
        **more,
    )


class Migration(migrations.Migration):
    dependencies = [
        ("graph", "0007_links_move_the_digest"),
        ("observations", "0011_row_policies_of_activation"),
        ("operations", "0004_held_objects_of_a_kind"),
    ]

    operations = [
        prune("exports", PRUNE_EXPORTS, prune("exports", EXPORTS.PRUNE_EXPORTS).sql(), language="plpgsql"),
        prune("activations", PRUNE_RUNS, prune("activations", RUNS.PRUNE).sql(), language="plpgsql"),
        DefineFunction(
            "observations_corpus_changes",
            "workspace uuid, since timestamptz",
            "TABLE (standing bigint, added bigint, put_away bigint)",
            CORPUS,
            volatility="STABLE",
            execute=(STAFF,),
        ),
    ]
