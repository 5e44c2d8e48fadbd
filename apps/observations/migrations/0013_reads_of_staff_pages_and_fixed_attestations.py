"""What pages of the journal read beyond the rows that staff see, and an attestation that keeps its author."""

from django.db import migrations, models

from apps.core.db.operations import DefineFunction
from apps.core.db.rowpolicy import STAFF

SEES = "ARRAY['view_traces', 'operate_collection', 'review_retention', 'audit']"

# Until when anything is left, hidden rows counted: the deadlines alone, of workspaces that the user may look into.
LAST_DEADLINES = f"""
  SELECT w.id,
    (SELECT max(o.record_expires_at) FROM public.observations_observation o WHERE o.workspace_id = w.id),
    (SELECT max(t.text_expires_at) FROM public.observations_observation_text t WHERE t.workspace_id = w.id)
  FROM unnest(public.accounts_granted_workspaces({SEES})) w(id)
"""

# That collection is stopped, and since when; by whom and why is for those who watch over it.
STOPS = f"""
  SELECT k.id, k.workspace_id, k.thrown_at FROM public.observations_kill_switch k
  WHERE k.released_at IS NULL
    AND cardinality(public.accounts_granted_workspaces({SEES})) > 0
    AND (k.workspace_id IS NULL OR k.workspace_id = ANY (public.accounts_granted_workspaces({SEES})))
"""

FORMER_EXPORT_FIXED = """
BEGIN
  IF to_jsonb(NEW) - '{attested_at,attested_by_id}'::text[] <> to_jsonb(OLD) - '{attested_at,attested_by_id}'::text[]
     OR (OLD.attested_at IS NOT NULL AND NEW.attested_at IS DISTINCT FROM OLD.attested_at) THEN
    RAISE EXCEPTION 'export_record_is_fixed' USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END
"""
# Who attested is written with when, and changes only when that account goes.
EXPORT_FIXED = """
BEGIN
  IF to_jsonb(NEW) - '{attested_at,attested_by_id}'::text[] <> to_jsonb(OLD) - '{attested_at,attested_by_id}'::text[]
     OR (OLD.attested_at IS NOT NULL AND NEW.attested_at IS DISTINCT FROM OLD.attested_at)
     OR (OLD.attested_at IS NOT NULL AND NEW.attested_by_id IS NOT NULL
         AND NEW.attested_by_id IS DISTINCT FROM OLD.attested_by_id)
     OR (NEW.attested_at IS NULL AND NEW.attested_by_id IS NOT NULL) THEN
    RAISE EXCEPTION 'export_record_is_fixed' USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END
"""


def export_fixed(body: str, previous: str | None = None) -> DefineFunction:
    return DefineFunction(
        "observations_export_fixed", "", "trigger", body, language="plpgsql", previous=previous
    )


class Migration(migrations.Migration):
    dependencies = [("observations", "0012_holds_keep_records_and_changes_of_the_corpus")]

    operations = [
        migrations.AddIndex(
            model_name="observation",
            index=models.Index(fields=["workspace", "record_expires_at"], name="observations_last_record"),
        ),
        migrations.AddIndex(
            model_name="observationtext",
            index=models.Index(fields=["workspace", "text_expires_at"], name="observations_last_text"),
        ),
        DefineFunction(
            "observations_last_deadlines",
            "",
            "TABLE (workspace_id uuid, last_record timestamptz, last_text timestamptz)",
            LAST_DEADLINES,
            volatility="STABLE",
            execute=(STAFF,),
        ),
        DefineFunction(
            "observations_stops",
            "",
            "TABLE (id uuid, workspace_id uuid, thrown_at timestamptz)",
            STOPS,
            volatility="STABLE",
            execute=(STAFF,),
        ),
        export_fixed(EXPORT_FIXED, export_fixed(FORMER_EXPORT_FIXED).sql()),
    ]
