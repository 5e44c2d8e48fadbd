"""The narrow functions of the journal, and the triggers that let no row be rewritten.

Order of locks in each: the journal, the principal, then rows.
"""

from django.db import migrations

from apps.core.db.operations import AddTrigger, DefineFunction
from apps.core.db.rowpolicy import API, APP, MAINTENANCE, MONITOR

SPACE = 1785884268  # jrnl
OWN = "nullif(current_setting('memory.principal_id', true), '')::uuid"
HERE = "nullif(current_setting('memory.workspace_id', true), '')::uuid"
SHARED = "nullif(current_setting('memory.shared_principal_id', true), '')::uuid"

INSTALLED = """
INSERT INTO observations_maintenance_state
  (id, processed_count, last_failure_code, consecutive_failures, system_identifier, database_oid)
SELECT 1, 0, '', 0, c.system_identifier, d.oid::bigint
FROM pg_control_system() c, pg_database d WHERE d.datname = current_database()
"""

# An identity that is forgotten or cannot be read counts as another one.
GATE_OPEN = """
  SELECT coalesce((
    SELECT s.system_identifier = c.system_identifier AND s.database_oid = d.oid::bigint
    FROM public.observations_maintenance_state s, pg_control_system() c, pg_database d
    WHERE s.id = 1 AND d.datname = current_database()), false)
"""

RECORD_FIXED = """
BEGIN
  IF to_jsonb(NEW) - '{record_expires_at,trace_id}'::text[] <> to_jsonb(OLD) - '{record_expires_at,trace_id}'::text[]
     OR NEW.record_expires_at > OLD.record_expires_at
     OR (NEW.trace_id IS NOT NULL AND NEW.trace_id IS DISTINCT FROM OLD.trace_id) THEN
    RAISE EXCEPTION 'observation_is_fixed' USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END
"""

TEXT_FIXED = """
BEGIN
  IF to_jsonb(NEW) - 'text_expires_at' <> to_jsonb(OLD) - 'text_expires_at'
     OR NEW.text_expires_at > OLD.text_expires_at THEN
    RAISE EXCEPTION 'observation_is_fixed' USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END
"""

FEEDBACK_FIXED = """
BEGIN
  IF to_jsonb(NEW) - '{helpful,cited,withdrawn_at,updated_at}'::text[]
     <> to_jsonb(OLD) - '{helpful,cited,withdrawn_at,updated_at}'::text[] THEN
    RAISE EXCEPTION 'observation_is_fixed' USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END
"""

ENROLMENT_FIXED = """
BEGIN
  IF to_jsonb(NEW) - '{withdrawn_at,erased_before,enrolled_by_id}'::text[]
     <> to_jsonb(OLD) - '{withdrawn_at,erased_before,enrolled_by_id}'::text[]
     OR (NEW.enrolled_by_id IS NOT NULL AND NEW.enrolled_by_id IS DISTINCT FROM OLD.enrolled_by_id)
     OR (OLD.withdrawn_at IS NOT NULL AND NEW.withdrawn_at IS DISTINCT FROM OLD.withdrawn_at)
     OR (OLD.erased_before IS NOT NULL AND (NEW.erased_before IS NULL OR NEW.erased_before < OLD.erased_before))
  THEN
    RAISE EXCEPTION 'enrolment_is_fixed' USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END
"""

KILL_SWITCH_FIXED = """
BEGIN
  IF OLD.released_at IS NOT NULL AND NEW.released_at IS DISTINCT FROM OLD.released_at
     OR to_jsonb(NEW) - '{released_at,released_by_id,thrown_by_id}'::text[]
        <> to_jsonb(OLD) - '{released_at,released_by_id,thrown_by_id}'::text[]
     OR (NEW.thrown_by_id IS NOT NULL AND NEW.thrown_by_id IS DISTINCT FROM OLD.thrown_by_id) THEN
    RAISE EXCEPTION 'kill_switch_is_fixed' USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END
"""

EXPORT_FIXED = """
BEGIN
  IF to_jsonb(NEW) - '{attested_at,attested_by_id}'::text[] <> to_jsonb(OLD) - '{attested_at,attested_by_id}'::text[]
     OR (OLD.attested_at IS NOT NULL AND NEW.attested_at IS DISTINCT FROM OLD.attested_at) THEN
    RAISE EXCEPTION 'export_record_is_fixed' USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END
"""

# What admission rests on, of the session's principal, in one read.
ADMISSION = f"""
  SELECT p.id, p.version, p.document,
         EXISTS (SELECT FROM public.observations_kill_switch k
                 WHERE k.released_at IS NULL AND (k.workspace_id IS NULL OR k.workspace_id = {HERE})),
         public.observations_gate_open(),
         e.id, e.purpose::text, e.consent_version::text,
         (SELECT max(was.erased_before) FROM public.observations_enrolment was WHERE was.principal_id = {OWN})
  FROM (SELECT) one
  LEFT JOIN LATERAL (
    SELECT s.id, s.version, s.document FROM public.core_storedpolicy s
    WHERE s.kind = 'collection' AND s.effective_from <= statement_timestamp()
      AND (s.workspace_id = {HERE} OR s.workspace_id IS NULL)
    ORDER BY s.workspace_id IS NULL, s.effective_from DESC LIMIT 1) p ON true
  LEFT JOIN public.observations_enrolment e ON e.principal_id = {OWN} AND e.withdrawn_at IS NULL
"""

EXPIRE = """
DECLARE
  till timestamptz := least(cutoff, statement_timestamp());
  most int := greatest(1, least(batch, 5000));
BEGIN
  WITH due AS (
    SELECT o.id FROM public.observations_observation o WHERE o.record_expires_at <= till
    ORDER BY o.record_expires_at LIMIT most FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM public.observations_observation o USING due WHERE o.id = due.id RETURNING 1
  ) SELECT count(*) INTO records FROM gone;
  WITH due AS (
    SELECT t.observation_id FROM public.observations_observation_text t WHERE t.text_expires_at <= till
    ORDER BY t.text_expires_at LIMIT most FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM public.observations_observation_text t USING due WHERE t.observation_id = due.observation_id
    RETURNING 1
  ) SELECT count(*) INTO texts FROM gone;
  INSERT INTO public.observations_maintenance_state AS state
    (id, last_success_at, last_drained_at, processed_count, last_failure_code, consecutive_failures)
  VALUES (1, clock_timestamp(), CASE WHEN records + texts = 0 THEN clock_timestamp() END, records + texts, '', 0)
  ON CONFLICT (id) DO UPDATE SET
    last_success_at = excluded.last_success_at,
    last_drained_at = coalesce(excluded.last_drained_at, state.last_drained_at),
    processed_count = state.processed_count + excluded.processed_count,
    consecutive_failures = CASE WHEN records + texts = 0 THEN 0 ELSE state.consecutive_failures END;
  RETURN NEXT;
END
"""

EXPIRE_FAILED = """
  INSERT INTO public.observations_maintenance_state AS state
    (id, processed_count, last_failure_at, last_failure_code, consecutive_failures)
  VALUES (1, 0, clock_timestamp(), left(code, 100), 1)
  ON CONFLICT (id) DO UPDATE SET
    last_failure_at = clock_timestamp(), last_failure_code = excluded.last_failure_code,
    consecutive_failures = state.consecutive_failures + 1
"""

# Deadlines only ever move earlier: of what lies later, the oldest first.
SHORTEN = """
DECLARE
  life interval := make_interval(hours => hours);
  most int := greatest(1, least(batch, 5000));
BEGIN
  IF hours < 1 OR hours > 2160 THEN
    RAISE EXCEPTION 'hours_out_of_bounds' USING ERRCODE = 'check_violation';
  END IF;
  WITH late AS (
    SELECT o.id FROM public.observations_observation o
    WHERE o.workspace_id = workspace AND o.record_expires_at > o.observed_at + life
    ORDER BY o.observed_at LIMIT most FOR UPDATE SKIP LOCKED
  ), moved AS (
    UPDATE public.observations_observation o SET record_expires_at = o.observed_at + life
    FROM late WHERE o.id = late.id RETURNING 1
  ) SELECT count(*) INTO records FROM moved;
  WITH late AS (
    SELECT t.observation_id FROM public.observations_observation_text t
    WHERE t.workspace_id = workspace AND t.text_expires_at > t.observed_at + life
    ORDER BY t.observed_at LIMIT most FOR UPDATE SKIP LOCKED
  ), moved AS (
    UPDATE public.observations_observation_text t SET text_expires_at = t.observed_at + life
    FROM late WHERE t.observation_id = late.observation_id RETURNING 1
  ) SELECT count(*) INTO texts FROM moved;
  RETURN NEXT;
END
"""

STATUS = """
  WITH counted AS (
    SELECT
      (SELECT count(*) FROM public.observations_observation o
       WHERE o.record_expires_at <= statement_timestamp()) AS records,
      (SELECT count(*) FROM public.observations_observation_text t
       WHERE t.text_expires_at <= statement_timestamp()) AS texts,
      greatest(0, extract(epoch FROM statement_timestamp() - least(
        (SELECT min(o.record_expires_at) FROM public.observations_observation o),
        (SELECT min(t.text_expires_at) FROM public.observations_observation_text t))))::float8 AS overdue
  ), stood AS (
    SELECT s.last_success_at, s.last_drained_at, coalesce(s.consecutive_failures, 0) AS failures,
           extract(epoch FROM statement_timestamp() - s.last_success_at)::float8 AS age
    FROM (SELECT) one LEFT JOIN public.observations_maintenance_state s ON s.id = 1
  ), told AS (
    SELECT *, array_remove(ARRAY[
      CASE WHEN last_success_at IS NULL THEN 'never_succeeded' END,
      CASE WHEN age >= 1800 THEN 'success_stale' END,
      CASE WHEN age < -60 THEN 'success_in_future' END,
      CASE WHEN records > 0 THEN 'expired_records' END,
      CASE WHEN texts > 0 THEN 'expired_texts' END,
      CASE WHEN failures >= 2 THEN 'failing' END,
      CASE WHEN NOT public.observations_gate_open() THEN 'identity_changed' END], NULL) AS reasons
    FROM counted, stood
  )
  SELECT statement_timestamp(), last_success_at, age, last_drained_at, records, texts, coalesce(overdue, 0),
         failures, cardinality(reasons) > 0, reasons
  FROM told
"""
STATUS_COLUMNS = (
    "TABLE (checked_at timestamptz, last_success_at timestamptz, seconds_since_success float8, "
    "last_drained_at timestamptz, expired_records bigint, expired_texts bigint, oldest_overdue_seconds float8, "
    "consecutive_failures int, alarm boolean, alarm_reasons text[])"
)

PRUNE_EXPORTS = """
  WITH due AS (
    SELECT x.id FROM public.observations_export_record x
    WHERE x.exported_at < least(cutoff, statement_timestamp()) - interval '400 days'
    ORDER BY x.id LIMIT greatest(1, least(batch, 5000)) FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM public.observations_export_record x USING due WHERE x.id = due.id RETURNING 1
  ) SELECT count(*) FROM gone
"""

TRIGGERS = (
    ("Observation", "observations_record_fixed", RECORD_FIXED),
    ("ObservationText", "observations_text_fixed", TEXT_FIXED),
    ("ObservationFeedback", "observations_feedback_fixed", FEEDBACK_FIXED),
    ("Enrolment", "observations_enrolment_fixed", ENROLMENT_FIXED),
    ("KillSwitch", "observations_kill_switch_fixed", KILL_SWITCH_FIXED),
    ("ExportRecord", "observations_export_fixed", EXPORT_FIXED),
)


class Migration(migrations.Migration):
    dependencies = [("observations", "0002_row_policies_keys_checks_and_views")]

    operations = [
        migrations.RunSQL(INSTALLED, "DELETE FROM observations_maintenance_state"),
        DefineFunction(
            "observations_gate_open", "", "boolean", GATE_OPEN, volatility="STABLE", execute=(APP,)
        ),
        *(DefineFunction(name, "", "trigger", body, language="plpgsql") for _, name, body in TRIGGERS),
        *(AddTrigger("observations", model, name, "BEFORE UPDATE", name) for model, name, _ in TRIGGERS),
        DefineFunction(
            "observations_admission",
            "",
            "TABLE (policy_id uuid, generation int, document jsonb, killed boolean, gate_open boolean, enrolment_id uuid, "
            "purpose text, consent_version text, erased_before timestamptz)",
            ADMISSION,
            volatility="STABLE",
            execute=(API,),
        ),
        DefineFunction(
            "observations_expire",
            "batch int, cutoff timestamptz",
            "TABLE (records bigint, texts bigint)",
            EXPIRE,
            language="plpgsql",
            execute=(MAINTENANCE,),
        ),
        DefineFunction(
            "observations_expire_failed", "code text", "void", EXPIRE_FAILED, execute=(MAINTENANCE,)
        ),
        DefineFunction(
            "observations_shorten",
            "workspace uuid, hours int, batch int",
            "TABLE (records bigint, texts bigint)",
            SHORTEN,
            language="plpgsql",
            execute=(MAINTENANCE,),
        ),
        DefineFunction(
            "observations_status", "", STATUS_COLUMNS, STATUS, volatility="STABLE", execute=(MONITOR,)
        ),
        DefineFunction(
            "observations_prune_exports",
            "batch int, cutoff timestamptz",
            "bigint",
            PRUNE_EXPORTS,
            execute=(MAINTENANCE,),
        ),
    ]
