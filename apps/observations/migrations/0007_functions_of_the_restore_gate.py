"""The steps of the restore gate: drained for this database, opened for it by two persons, closed."""

from django.db import migrations

from apps.core.db.operations import DefineFunction
from apps.core.db.rowpolicy import MAINTENANCE, STAFF

OVERDUE = """
    EXISTS (SELECT FROM public.observations_observation o WHERE o.record_expires_at <= clock_timestamp())
    OR EXISTS (SELECT FROM public.observations_observation_text t WHERE t.text_expires_at <= clock_timestamp())
"""
LIVE = "pg_control_system() c, pg_database d WHERE d.datname = current_database()"

DRAINED = f"""
BEGIN
  IF {OVERDUE} THEN
    RAISE EXCEPTION 'overdue_rows_left' USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  INSERT INTO public.observations_maintenance_state AS state
    (id, processed_count, last_failure_code, consecutive_failures, drained_at, drained_system_identifier,
     drained_database_oid)
  SELECT 1, 0, '', 0, clock_timestamp(), c.system_identifier, d.oid::bigint FROM {LIVE}
  ON CONFLICT (id) DO UPDATE SET
    drained_at = excluded.drained_at, drained_system_identifier = excluded.drained_system_identifier,
    drained_database_oid = excluded.drained_database_oid;
END
"""

# The session's user is the first of the two. That both hold the right is asked before, in a session of each.
OPENED = f"""
DECLARE
  first int := nullif(current_setting('memory.user_id', true), '')::int;
BEGIN
  IF first IS NULL OR second IS NULL OR first = second OR 2 <> (
    SELECT count(*) FROM public.auth_user u WHERE u.id IN (first, second) AND u.is_active AND u.is_staff) THEN
    RAISE insufficient_privilege USING MESSAGE = 'two persons open the journal';
  END IF;
  IF {OVERDUE} THEN
    RAISE EXCEPTION 'overdue_rows_left' USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  UPDATE public.observations_maintenance_state s
  SET system_identifier = s.drained_system_identifier, database_oid = s.drained_database_oid
  FROM pg_control_system() c, pg_database d
  WHERE d.datname = current_database() AND s.id = 1 AND s.drained_at IS NOT NULL
    AND s.drained_system_identifier = c.system_identifier AND s.drained_database_oid = d.oid::bigint;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'not_drained' USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
END
"""

CLOSED = """
  UPDATE public.observations_maintenance_state
  SET system_identifier = NULL, database_oid = NULL, drained_at = NULL, drained_system_identifier = NULL,
      drained_database_oid = NULL
  WHERE id = 1
"""


class Migration(migrations.Migration):
    dependencies = [
        ("observations", "0006_owners_view_as_a_model"),
        ("accounts", "0005_superusers_manage_staff"),
    ]

    operations = [
        DefineFunction(
            "observations_gate_drained", "", "void", DRAINED, language="plpgsql", execute=(MAINTENANCE,)
        ),
        DefineFunction(
            "observations_gate_opened", "second int", "void", OPENED, language="plpgsql", execute=(STAFF,)
        ),
        DefineFunction("observations_gate_closed", "", "void", CLOSED, execute=(MAINTENANCE,)),
    ]
