"""Who sees certificates, and the narrow functions by which a principal's rows are counted and deleted.

Each takes its principal from the session, and tables from the list that the owner writes after every migrate.
"""

from django.db import migrations

from apps.core.db.operations import AddTrigger, ApplyRowPolicy, DefineFunction
from apps.core.db.rowpolicy import API, APP, MAINTENANCE, STAFF, CustomPolicy, granted

READ = granted("review_retention", "audit")
CERTIFICATE = CustomPolicy(
    rules=(
        ("app", "ALL", APP, "true", "true"),
        ("staff", "SELECT", STAFF, READ, None),
    ),
    allow={APP: "rw", STAFF: "r"},
)
OWNER = "nullif(current_setting('memory.principal_id', true), '')::uuid"

COUNTS = f"""
DECLARE
  entry public.operations_erasabletable;
  owner uuid := {OWNER};
BEGIN
  FOR entry IN SELECT * FROM public.operations_erasabletable e ORDER BY e.position LOOP
    name := entry.name;
    EXECUTE format('SELECT count(*) FROM public.%I WHERE %I = $1', entry.name, entry.owner_column)
    INTO rows USING owner;
    RETURN NEXT;
  END LOOP;
END
"""

# A hold covers the principal itself, whatever the kind is called, or one of its rows.
HELD = f"""
DECLARE
  owner uuid := {OWNER};
  item record;
  entry public.operations_erasabletable;
  covered boolean;
  held text[] := '{{}}';
BEGIN
  PERFORM public.operations_hold_lock(kinds || ARRAY(SELECT e.label::text FROM public.operations_erasabletable e));
  FOR item IN
    SELECT DISTINCT i.kind::text AS kind, i.object_id
    FROM public.operations_holditem i
    JOIN public.operations_legalhold h ON h.id = i.hold_id AND h.released_at IS NULL
    WHERE i.workspace_id = nullif(current_setting('memory.workspace_id', true), '')::uuid
  LOOP
    covered := item.object_id = owner;
    SELECT * INTO entry FROM public.operations_erasabletable e
    WHERE e.label = item.kind AND e.key_column <> '';
    IF NOT covered AND FOUND THEN
      EXECUTE format('SELECT EXISTS (SELECT FROM public.%I WHERE %I = $1 AND %I = $2)',
                     entry.name, entry.key_column, entry.owner_column)
      INTO covered USING item.object_id, owner;
    END IF;
    IF covered AND NOT item.kind = ANY (held) THEN
      held := held || item.kind;
    END IF;
  END LOOP;
  RETURN held;
END
"""

# Locking the principal waits for its writes in flight, and keeps two erasures of one from beginning.
BEGIN = f"""
DECLARE
  owner uuid := {OWNER};
  space uuid := nullif(current_setting('memory.workspace_id', true), '')::uuid;
  shared uuid := nullif(current_setting('memory.shared_principal_id', true), '')::uuid;
  running uuid;
BEGIN
  IF owner IS NULL OR owner = shared THEN
    RAISE insufficient_privilege USING MESSAGE = 'nobody to erase in this session';
  END IF;
  PERFORM 1 FROM public.accounts_principal p WHERE p.id = owner FOR UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  SELECT r.certificate_id INTO running FROM public.operations_erasurerun r WHERE r.principal_id = owner;
  IF FOUND THEN
    RETURN running;
  END IF;
  INSERT INTO public.operations_erasurecertificate
    (id, workspace_id, version, scope, actor, status, reason_code, requested_at, fence_at, tables,
     export_copies, backup_days, checksum)
  VALUES (certificate, space, 1, 'all', asked_by, 'running', '', asked_at, clock_timestamp(), '[]', '[]',
     backups, '');
  INSERT INTO public.operations_erasurerun
    (certificate_id, workspace_id, principal_id, shared_principal_id, deleted, attempts)
  VALUES (certificate, space, owner, shared, '{{}}', 0);
  UPDATE public.accounts_principal p SET disabled_at = coalesce(p.disabled_at, clock_timestamp())
  WHERE p.id = owner;
  RETURN certificate;
END
"""

NOTE_ENTRY = f"""
  UPDATE public.operations_erasurecertificate c SET audit_entry_id = entry
  FROM public.operations_erasurerun r
  WHERE c.id = certificate AND r.certificate_id = c.id AND r.principal_id = {OWNER}
"""

BATCH = f"""
DECLARE
  owner uuid := {OWNER};
  entry public.operations_erasabletable;
  gone bigint;
BEGIN
  PERFORM 1 FROM public.operations_erasurerun r WHERE r.principal_id = owner FOR UPDATE;
  IF NOT FOUND THEN
    RAISE insufficient_privilege USING MESSAGE = 'no erasure of this principal has begun';
  END IF;
  SELECT * INTO entry FROM public.operations_erasabletable e WHERE e.name = wanted AND e.rule = 'delete';
  IF NOT FOUND THEN
    RAISE insufficient_privilege USING MESSAGE = 'that table is not one of the erasable ones';
  END IF;
  EXECUTE format(
    'DELETE FROM public.%1$I WHERE ctid = ANY (ARRAY(SELECT ctid FROM public.%1$I WHERE %2$I = $1 LIMIT $2))',
    entry.name, entry.owner_column)
  USING owner, greatest(1, least(batch, 5000));
  GET DIAGNOSTICS gone = ROW_COUNT;
  UPDATE public.operations_erasurerun r
  SET deleted = jsonb_set(r.deleted, ARRAY[wanted],
                          to_jsonb(coalesce((r.deleted ->> wanted)::bigint, 0) + gone))
  WHERE r.principal_id = owner;
  RETURN gone;
END
"""

FIXED = """
BEGIN
  IF OLD.status = 'complete' OR
     (NEW.id, NEW.workspace_id, NEW.version, NEW.scope, NEW.actor, NEW.requested_at, NEW.fence_at)
     IS DISTINCT FROM
     (OLD.id, OLD.workspace_id, OLD.version, OLD.scope, OLD.actor, OLD.requested_at, OLD.fence_at) THEN
    RAISE EXCEPTION 'certificate_is_fixed' USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END
"""

# Brings an erasure back after a restore, under its own id and fence.
REPLAY = """
BEGIN
  IF EXISTS (SELECT FROM public.operations_erasurecertificate c
             WHERE c.id = certificate AND c.status = 'complete') THEN
    RETURN false;
  END IF;
  INSERT INTO public.operations_erasurecertificate
    (id, workspace_id, version, scope, actor, status, reason_code, requested_at, fence_at, tables,
     export_copies, backup_days, checksum)
  VALUES (certificate, space, 1, 'all', 'replay', 'running', '', fence, fence, '[]', '[]', NULL, '')
  ON CONFLICT (id) DO NOTHING;
  DELETE FROM public.operations_erasurerun r WHERE r.principal_id = owner AND r.certificate_id <> certificate;
  INSERT INTO public.operations_erasurerun
    (certificate_id, workspace_id, principal_id, shared_principal_id, line_written_at, deleted, attempts)
  VALUES (certificate, space, owner,
    (SELECT p.id FROM public.accounts_principal p WHERE p.workspace_id = space AND p.subject = 'shared'),
    fence, '{}', 0)
  ON CONFLICT (certificate_id) DO NOTHING;
  UPDATE public.accounts_principal p SET disabled_at = coalesce(p.disabled_at, clock_timestamp())
  WHERE p.id = owner AND p.workspace_id = space AND p.subject <> 'shared';
  RETURN true;
END
"""

PRUNE = """
  WITH due AS (
    SELECT c.id FROM public.operations_erasurecertificate c
    WHERE c.completed_at < least(cutoff, statement_timestamp()) - interval '1826 days'
    ORDER BY c.id LIMIT greatest(1, least(batch, 5000)) FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM public.operations_erasurecertificate c USING due WHERE c.id = due.id RETURNING 1
  ) SELECT count(*) FROM gone
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0004_find_issuers_with_scopes"),
        ("operations", "0005_erasure_certificates_and_runs"),
    ]

    operations = [
        ApplyRowPolicy("operations", "ErasureCertificate", CERTIFICATE),
        DefineFunction(
            "operations_erasure_counts",
            "",
            "TABLE (name text, rows bigint)",
            COUNTS,
            language="plpgsql",
            volatility="STABLE",
            execute=(API,),
        ),
        DefineFunction(
            "operations_erasure_held", "kinds text[]", "text[]", HELD, language="plpgsql", execute=(API,)
        ),
        DefineFunction(
            "operations_erasure_begin",
            "certificate uuid, asked_by text, asked_at timestamptz, backups int",
            "uuid",
            BEGIN,
            language="plpgsql",
            execute=(API,),
        ),
        DefineFunction(
            "operations_erasure_note_entry",
            "certificate uuid, entry uuid",
            "void",
            NOTE_ENTRY,
            execute=(API,),
        ),
        DefineFunction(
            "operations_erase_batch",
            "wanted text, batch int",
            "bigint",
            BATCH,
            language="plpgsql",
            execute=(API,),
        ),
        DefineFunction(
            "operations_erasure_replay",
            "certificate uuid, fence timestamptz, space uuid, owner uuid",
            "boolean",
            REPLAY,
            language="plpgsql",
            execute=(MAINTENANCE,),
        ),
        DefineFunction(
            "operations_prune_certificates",
            "batch int, cutoff timestamptz",
            "bigint",
            PRUNE,
            execute=(MAINTENANCE,),
        ),
        DefineFunction("operations_erasure_fixed", "", "trigger", FIXED, language="plpgsql"),
        AddTrigger(
            "operations",
            "ErasureCertificate",
            "operations_erasure_fixed",
            "BEFORE UPDATE",
            "operations_erasure_fixed",
        ),
    ]
