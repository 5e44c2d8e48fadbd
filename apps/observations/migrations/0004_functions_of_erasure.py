"""Erasure of the journal by its owner: fence, batches, recount. Each function takes its principal from the session.

Order of locks in each: the journal, the erasure, then rows.
"""

from django.db import migrations

from apps.core.db.operations import DefineFunction
from apps.core.db.rowpolicy import API, MAINTENANCE

SPACE = 1785884268  # jrnl
OWN = "nullif(current_setting('memory.principal_id', true), '')::uuid"
HERE = "nullif(current_setting('memory.workspace_id', true), '')::uuid"

# Apps above replace this with what must go before observations do: copies that no key leads to.
BEFORE_ERASE = "SELECT"

# A row may have been observed a little ahead of this clock; the fence stands behind it.
BEGIN = f"""
DECLARE
  owner uuid := {OWN};
  space uuid := {HERE};
  running uuid;
  fence timestamptz;
BEGIN
  IF owner IS NULL THEN
    RAISE insufficient_privilege USING MESSAGE = 'nobody to erase in this session';
  END IF;
  PERFORM pg_advisory_xact_lock({SPACE}, hashtext(space::text));
  IF wanted IS NOT NULL THEN
    SELECT r.id INTO running FROM public.observations_erasure r
    WHERE r.principal_id = owner AND r.observation_id = wanted AND r.completed_at IS NULL;
    IF running IS NULL AND NOT EXISTS (SELECT FROM public.observations_observation o
                                       WHERE o.principal_id = owner AND o.id = wanted) THEN
      RETURN NULL;
    END IF;
  ELSE
    SELECT r.id INTO running FROM public.observations_erasure r
    WHERE r.principal_id = owner AND r.scope = 'journal' AND r.completed_at IS NULL;
  END IF;
  IF running IS NULL THEN
    SELECT greatest(clock_timestamp(), max(o.observed_at)) INTO fence
    FROM public.observations_observation o WHERE o.principal_id = owner;
    INSERT INTO public.operations_erasurecertificate
      (id, workspace_id, version, scope, actor, status, reason_code, requested_at, fence_at, tables,
       export_copies, backup_days, checksum)
    VALUES (certificate, space, 1, CASE WHEN wanted IS NULL THEN 'journal' ELSE 'one' END, asked_by, 'running', '',
       asked_at, fence, '[]', '[]', backups, '');
    INSERT INTO public.observations_erasure
      (id, workspace_id, principal_id, scope, observation_id, withdraw, fence_at, deleted)
    VALUES (certificate, space, owner, CASE WHEN wanted IS NULL THEN 'journal' ELSE 'one' END, wanted, withdraw,
       fence, '{{}}');
  END IF;
  IF wanted IS NULL THEN
    UPDATE public.observations_enrolment e
    SET erased_before = greatest(e.erased_before, fence),
        withdrawn_at = CASE WHEN withdraw THEN coalesce(e.withdrawn_at, clock_timestamp()) ELSE e.withdrawn_at END
    WHERE e.principal_id = owner;
  END IF;
  RETURN coalesce(running, certificate);
END
"""

ERASE_OWN = f"""
DECLARE
  owner uuid := {OWN};
  run public.observations_erasure;
  ids uuid[];
BEGIN
  SELECT * INTO run FROM public.observations_erasure r
  WHERE r.id = certificate AND r.principal_id = owner AND r.completed_at IS NULL FOR UPDATE;
  IF NOT FOUND THEN
    RAISE insufficient_privilege USING MESSAGE = 'no erasure of this principal has begun';
  END IF;
  SELECT array_agg(due.id) INTO ids FROM (
    SELECT o.id FROM public.observations_observation o
    WHERE o.principal_id = owner AND o.observed_at <= run.fence_at
      AND (run.scope = 'journal' OR o.id = run.observation_id)
    ORDER BY o.observed_at, o.id LIMIT greatest(1, least(batch, 5000)) FOR UPDATE) due;
  observations := coalesce(cardinality(ids), 0); texts := 0; feedback := 0;
  IF observations > 0 THEN
    PERFORM public.observations_before_erase(owner, ids);
    SELECT count(*) INTO texts FROM public.observations_observation_text t WHERE t.observation_id = ANY (ids);
    SELECT count(*) INTO feedback FROM public.observations_observation_feedback f
    WHERE f.principal_id = owner AND f.observation_id = ANY (ids);
    DELETE FROM public.observations_observation o WHERE o.principal_id = owner AND o.id = ANY (ids);
    UPDATE public.observations_erasure r SET deleted = jsonb_build_object(
      'observations_observation',
      coalesce((r.deleted ->> 'observations_observation')::bigint, 0) + observations,
      'observations_observation_text',
      coalesce((r.deleted ->> 'observations_observation_text')::bigint, 0) + texts,
      'observations_observation_feedback',
      coalesce((r.deleted ->> 'observations_observation_feedback')::bigint, 0) + feedback)
    WHERE r.id = certificate;
  END IF;
  RETURN NEXT;
END
"""

# Rows of the session's principal, hidden and expired ones included, that were observed until then.
OWN_COUNT = f"""
  WITH own AS (
    SELECT o.id FROM public.observations_observation o
    WHERE o.principal_id = {OWN} AND o.observed_at <= until AND (wanted IS NULL OR o.id = wanted))
  SELECT 'observations_observation', count(*) FROM own
  UNION ALL SELECT 'observations_observation_text', count(*)
  FROM own JOIN public.observations_observation_text t ON t.observation_id = own.id
  UNION ALL SELECT 'observations_observation_feedback', count(*)
  FROM own JOIN public.observations_observation_feedback f
    ON f.principal_id = {OWN} AND f.observation_id = own.id
"""

NOTE = f"""
  UPDATE public.observations_erasure r
  SET found = coalesce(r.found, counted),
      line_written_at = CASE WHEN line THEN coalesce(r.line_written_at, clock_timestamp()) ELSE r.line_written_at END,
      completed_at = CASE WHEN done THEN clock_timestamp() END,
      observation_id = CASE WHEN done THEN NULL ELSE r.observation_id END
  WHERE r.id = certificate AND r.principal_id = {OWN} AND r.completed_at IS NULL
"""

NOTE_ENTRY = f"""
  UPDATE public.operations_erasurecertificate c SET audit_entry_id = entry
  FROM public.observations_erasure r
  WHERE c.id = certificate AND r.id = c.id AND r.principal_id = {OWN} AND c.status <> 'complete'
"""

OPEN = """
  SELECT r.id, r.workspace_id, r.principal_id FROM public.observations_erasure r
  WHERE r.completed_at IS NULL AND (wanted IS NULL OR r.id = wanted) ORDER BY r.id
"""

# Brings an erasure back after a restore, under its own id and fence.
REPLAY = """
BEGIN
  IF EXISTS (SELECT FROM public.operations_erasurecertificate c
             WHERE c.id = certificate AND c.status = 'complete') THEN
    RETURN 'complete';
  END IF;
  PERFORM pg_advisory_xact_lock(1785884268, hashtext(space::text));
  INSERT INTO public.operations_erasurecertificate
    (id, workspace_id, version, scope, actor, status, reason_code, requested_at, fence_at, tables,
     export_copies, backup_days, checksum)
  VALUES (certificate, space, 1, kind, 'replay', 'running', '', fence, fence, '[]', '[]', NULL, '')
  ON CONFLICT (id) DO NOTHING;
  IF NOT EXISTS (SELECT FROM public.accounts_principal p WHERE p.id = owner AND p.workspace_id = space) THEN
    RETURN 'absent';
  END IF;
  DELETE FROM public.observations_erasure r
  WHERE kind = 'journal' AND r.scope = 'journal' AND r.principal_id = owner AND r.completed_at IS NULL
    AND r.id <> certificate;
  INSERT INTO public.observations_erasure
    (id, workspace_id, principal_id, scope, observation_id, withdraw, fence_at, line_written_at, deleted)
  VALUES (certificate, space, owner, kind, wanted, withdrawn, fence, fence, '{}')
  ON CONFLICT (id) DO NOTHING;
  IF kind = 'journal' THEN
    UPDATE public.observations_enrolment e
    SET erased_before = greatest(e.erased_before, fence),
        withdrawn_at = CASE WHEN withdrawn AND e.enrolled_at <= fence THEN coalesce(e.withdrawn_at, fence)
                            ELSE e.withdrawn_at END
    WHERE e.principal_id = owner;
  END IF;
  RETURN 'run';
END
"""


class Migration(migrations.Migration):
    dependencies = [("observations", "0003_functions_and_triggers_of_the_journal")]

    operations = [
        DefineFunction("observations_before_erase", "owner uuid, wanted uuid[]", "void", BEFORE_ERASE),
        DefineFunction(
            "observations_erasure_begin",
            "certificate uuid, wanted uuid, asked_by text, asked_at timestamptz, backups int, withdraw boolean",
            "uuid",
            BEGIN,
            language="plpgsql",
            execute=(API,),
        ),
        DefineFunction(
            "observations_erase_own",
            "certificate uuid, batch int",
            "TABLE (observations bigint, texts bigint, feedback bigint)",
            ERASE_OWN,
            language="plpgsql",
            execute=(API,),
        ),
        DefineFunction(
            "observations_own_count",
            "until timestamptz, wanted uuid",
            "TABLE (name text, rows bigint)",
            OWN_COUNT,
            volatility="STABLE",
            execute=(API,),
        ),
        DefineFunction(
            "observations_erasure_note",
            "certificate uuid, counted jsonb, line boolean, done boolean",
            "void",
            NOTE,
            execute=(API,),
        ),
        DefineFunction(
            "observations_erasure_note_entry",
            "certificate uuid, entry uuid",
            "void",
            NOTE_ENTRY,
            execute=(API,),
        ),
        DefineFunction(
            "observations_erasures_open",
            "wanted uuid",
            "TABLE (certificate uuid, workspace_id uuid, principal_id uuid)",
            OPEN,
            volatility="STABLE",
            execute=(MAINTENANCE,),
        ),
        DefineFunction(
            "observations_erasure_replay",
            "certificate uuid, kind text, fence timestamptz, space uuid, owner uuid, wanted uuid, withdrawn boolean",
            "text",
            REPLAY,
            language="plpgsql",
            execute=(MAINTENANCE,),
        ),
    ]
