"""Runs that must not go on are stopped without a person; what is due is found; what is left of a journal is told."""

from django.db import migrations, models

from apps.core.db.operations import DefineFunction
from apps.core.db.rowpolicy import MAINTENANCE, STAFF, granted

WATCHES = granted("operate_collection", "review_retention", "audit")

# C failed, or a day has passed since enabling without both parts of C2 and with C3.
TO_STOP = """
  WITH running AS (
    SELECT r.id, r.workspace_id, r.state, r.enabled_at FROM public.observations_activation_run r
    WHERE r.state IN ('enabled', 'pilot_verified')
  ), newest AS (
    SELECT e.run_id, e.item, e.result FROM public.observations_evidence e
    JOIN running r ON r.id = e.run_id AND e.observed_at >= r.enabled_at
    WHERE e.item IN ('C1', 'C2', 'C3', 'C4')
      AND NOT EXISTS (SELECT FROM public.observations_evidence later WHERE later.supersedes_id = e.id)
  ), told AS (
    SELECT r.*,
      EXISTS (SELECT FROM newest n WHERE n.run_id = r.id AND n.result = 'fail') AS failed,
      (SELECT count(*) FROM newest n WHERE n.run_id = r.id AND n.result = 'pass' AND n.item IN ('C2', 'C3')) AS passed
    FROM running r
  )
  SELECT t.id, t.workspace_id, CASE WHEN t.failed THEN 'pilot_failed' ELSE 'pilot_unproven' END, p.version, p.document
  FROM told t CROSS JOIN LATERAL (
    SELECT s.version, s.document FROM public.core_storedpolicy s
    WHERE s.kind = 'collection' AND s.workspace_id = t.workspace_id ORDER BY s.version DESC LIMIT 1) p
  WHERE t.failed OR (
    t.state = 'enabled' AND t.passed < 3 AND t.enabled_at <= statement_timestamp() - interval '24 hours')
"""

# Only what is to be stopped, only by a version that differs from the newest in its mode, and only behind the fence.
STOP = """
DECLARE
  due record;
BEGIN
  IF NOT EXISTS (
    SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.pid = pg_backend_pid() AND l.granted
      AND l.mode = 'ExclusiveLock' AND l.classid = 1785884268::oid AND l.objid = hashtext('all')::oid) THEN
    RAISE EXCEPTION 'no_fence' USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  PERFORM FROM public.observations_activation_run r WHERE r.id = wanted FOR UPDATE;
  SELECT * INTO due FROM public.observations_runs_to_stop() t WHERE t.run = wanted;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  IF due.document ->> 'mode' <> 'off' THEN
    IF off_document <> due.document || '{"mode": "off"}'::jsonb THEN
      RAISE EXCEPTION 'not_the_newest' USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    due.version := due.version + 1;
    INSERT INTO public.core_storedpolicy (id, workspace_id, kind, version, document, reason, hash)
    VALUES (policy, due.workspace, 'collection', due.version, off_document, due.cause, document_hash);
  END IF;
  UPDATE public.observations_activation_run
  SET state = 'stopping', stopped_at = clock_timestamp(), stopped_generation = due.version, fenced = true
  WHERE id = wanted;
  RETURN true;
END
"""

IN_FORCE = """
  SELECT r.id, r.workspace_id, e.item, e.part, e.result, e.observed_at, e.release, e.schema_sha256, e.roles_sha256,
         e.settings_sha256
  FROM public.observations_activation_run r JOIN public.observations_evidence e ON e.run_id = r.id
  WHERE r.state IN ('ready', 'approved', 'enabled', 'pilot_verified')
    AND NOT EXISTS (SELECT FROM public.observations_evidence later WHERE later.supersedes_id = e.id)
"""

COPIES = """
  SELECT x.workspace_id, count(*) FROM public.observations_export_record x
  WHERE x.latest_expires_at <= statement_timestamp() AND x.attested_at IS NULL GROUP BY x.workspace_id
"""

# Hidden rows, too: their keys, roles and upkeep are needed as long as one is there.
LEFT = f"""
  SELECT count(*), max(o.record_expires_at), coalesce(array_agg(DISTINCT o.fingerprint_key_id::text)
         FILTER (WHERE o.fingerprint_key_id IS NOT NULL), ARRAY[]::text[])
  FROM public.observations_observation o WHERE o.workspace_id = wanted AND o.{WATCHES}
"""


class Migration(migrations.Migration):
    dependencies = [("observations", "0013_reads_of_staff_pages_and_fixed_attestations")]

    operations = [
        migrations.AddField(
            model_name="activationrun",
            name="fenced",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="The transaction that stopped held the fence exclusively.",
            ),
        ),
        DefineFunction(
            "observations_runs_to_stop",
            "",
            "TABLE (run uuid, workspace uuid, cause text, version int, document jsonb)",
            TO_STOP,
            volatility="STABLE",
            execute=(MAINTENANCE,),
        ),
        DefineFunction(
            "observations_stop_run",
            "wanted uuid, policy uuid, off_document jsonb, document_hash text",
            "boolean",
            STOP,
            language="plpgsql",
            execute=(MAINTENANCE,),
        ),
        DefineFunction(
            "observations_evidence_in_force",
            "",
            "TABLE (run uuid, workspace uuid, item text, part text, result text, observed_at timestamptz, "
            "release text, schema_sha256 text, roles_sha256 text, settings_sha256 text)",
            IN_FORCE,
            volatility="STABLE",
            execute=(MAINTENANCE,),
        ),
        DefineFunction(
            "observations_overdue_copies",
            "",
            "TABLE (workspace uuid, copies bigint)",
            COPIES,
            volatility="STABLE",
            execute=(MAINTENANCE,),
        ),
        DefineFunction(
            "observations_left",
            "wanted uuid",
            "TABLE (records bigint, last_expires_at timestamptz, key_ids text[])",
            LEFT,
            volatility="STABLE",
            execute=(STAFF,),
        ),
    ]
