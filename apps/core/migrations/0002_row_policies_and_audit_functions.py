"""Who may see the shared rows, the functions that append to and look after the audit log, and the order of
policies."""

from django.db import migrations

from apps.core.db.operations import AddTrigger, ApplyRowPolicy, DefineFunction
from apps.core.db.rowpolicy import (
    API,
    MAINTENANCE,
    STAFF,
    SUPERUSER,
    WORKSPACE,
    CustomPolicy,
    OwnerPolicy,
    granted,
)

READERS = (
    "view_traces",
    "reveal_text",
    "curate",
    "annotate",
    "hold_keys",
    "review_retention",
    "manage_profiles",
    "operate_collection",
    "audit",
)
PUBLISHERS = ("manage_profiles", "review_retention", "operate_collection")
OWN_USER = "(SELECT nullif(current_setting('memory.user_id', true), '')::int)"
AUDIT_READ = f"({granted('audit')}) OR (workspace_id IS NULL AND {SUPERUSER})"
AUDIT_CHAIN = CustomPolicy(rules=(("staff", "SELECT", STAFF, AUDIT_READ, None),), allow={STAFF: "r"})
AUDIT_ENTRY = CustomPolicy(
    rules=(("staff", "SELECT", STAFF, f"{AUDIT_READ} OR actor_user_id = {OWN_USER}", None),),
    allow={STAFF: "r"},
)
STORED_POLICY = CustomPolicy(
    rules=(
        ("api", "SELECT", API, f"workspace_id = {WORKSPACE} OR workspace_id IS NULL", None),
        ("staff", "SELECT", STAFF, f"({granted(*READERS)}) OR workspace_id IS NULL", None),
        (
            "staff_append",
            "INSERT",
            STAFF,
            None,
            f"author_id = {OWN_USER} AND (({granted(*PUBLISHERS)}) OR workspace_id IS NULL AND {SUPERUSER})",
        ),
    ),
    allow={API: "r", STAFF: "ra"},
)

# Every part with its length before it (`~` for null), so that no two entries have one form.
AUDIT_HASH_ARGS = (
    "previous text, place bigint, entry uuid, workspace uuid, at timestamptz, kind text, staff int, "
    "principal uuid, action text, object_type text, object_id text, reason text, before text, after text, "
    "details jsonb, request text"
)
AUDIT_HASH = """
  SELECT encode(sha256(convert_to(
    string_agg(coalesce(octet_length(part)::text || ':' || part, '~'), ',' ORDER BY n), 'UTF8')), 'hex')
  FROM unnest(ARRAY[
    previous, place::text, entry::text, workspace::text, (extract(epoch FROM at) * 1000000)::bigint::text, kind,
    staff::text, principal::text, action, object_type, object_id, reason, before, after, details::text, request
  ]) WITH ORDINALITY AS parts (part, n)
"""

ALL_GRANTS = ", ".join(f"'{grant}'" for grant in READERS)

# The actor is the session's: nobody appends in another's name, nor to a chain that is none of theirs.
AUDIT_APPEND = f"""
DECLARE
  acting text := current_setting('role', true);
  staff int := nullif(current_setting('memory.user_id', true), '')::int;
  principal uuid := nullif(current_setting('memory.principal_id', true), '')::uuid;
  own uuid := nullif(current_setting('memory.workspace_id', true), '')::uuid;
  kind text;
  chain public.core_auditchain;
  at timestamptz;
  sealed text;
BEGIN
  IF acting = 'memory_api' AND principal IS NOT NULL AND wanted = own THEN
    kind := CASE WHEN staff IS NULL THEN 'principal' ELSE 'staff' END;
  ELSIF acting = 'memory_staff' AND staff IS NOT NULL AND (
      wanted IS NULL OR wanted = ANY (public.accounts_granted_workspaces(ARRAY[{ALL_GRANTS}]))
      OR public.accounts_is_superuser()) THEN
    kind := 'staff';
    principal := NULL;
  ELSIF acting = 'memory_maintenance' OR acting = 'none' AND session_user = 'memory_owner' THEN
    kind := 'platform';
    staff := NULL;
    principal := NULL;
  ELSE
    RAISE insufficient_privilege USING MESSAGE = 'this session may not append to that audit chain';
  END IF;
  INSERT INTO public.core_auditchain
    (id, workspace_id, last_sequence, last_hash, anchor_sequence, anchor_hash)
  VALUES (gen_random_uuid(), wanted, 0, '', 0, '') ON CONFLICT (workspace_id) DO NOTHING;
  SELECT * INTO chain FROM public.core_auditchain c
  WHERE c.workspace_id = wanted OR wanted IS NULL AND c.workspace_id IS NULL FOR UPDATE;
  -- After the lock, so that times rise with the sequence.
  at := clock_timestamp();
  sealed := public.core_audit_hash(chain.last_hash, chain.last_sequence + 1, entry, wanted, at, kind, staff,
    principal, action, object_type, object_id, reason, before, after, details, request);
  INSERT INTO public.core_auditentry
    (id, workspace_id, sequence, recorded_at, actor_kind, actor_user_id, principal_id, action, object_type,
     object_id, reason, before_sha256, after_sha256, details, request_id, previous_hash, hash)
  VALUES (entry, wanted, chain.last_sequence + 1, at, kind, staff, principal, action, object_type, object_id,
     reason, before, after, details, request, chain.last_hash, sealed);
  UPDATE public.core_auditchain c SET last_sequence = chain.last_sequence + 1, last_hash = sealed
  WHERE c.id = chain.id;
  RETURN chain.last_sequence + 1;
END
"""

AUDIT_VERIFY = """
#variable_conflict use_column
DECLARE
  chain public.core_auditchain;
  found_broken bigint;
  found_last bigint;
  found_hash text;
  found_count bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(1835099508, 0);  -- pruning waits
  FOR chain IN SELECT * FROM public.core_auditchain c ORDER BY c.workspace_id NULLS FIRST LOOP
    -- Entries that came after the head was read are the next run's.
    SELECT min(e.sequence) FILTER (WHERE e.bad), max(e.sequence), count(*),
           (array_agg(e.hash ORDER BY e.sequence DESC))[1]
    INTO found_broken, found_last, found_count, found_hash
    FROM (
      SELECT x.sequence, x.hash,
        x.sequence <> coalesce(lag(x.sequence) OVER w, chain.anchor_sequence) + 1
        OR x.previous_hash <> coalesce(lag(x.hash) OVER w, chain.anchor_hash)
        OR x.hash <> public.core_audit_hash(x.previous_hash, x.sequence, x.id, x.workspace_id, x.recorded_at,
          x.actor_kind, x.actor_user_id, x.principal_id, x.action, x.object_type, x.object_id, x.reason,
          x.before_sha256, x.after_sha256, x.details, x.request_id) AS bad
      FROM public.core_auditentry x
      WHERE (x.workspace_id = chain.workspace_id OR chain.workspace_id IS NULL AND x.workspace_id IS NULL)
        AND x.sequence <= chain.last_sequence
      WINDOW w AS (ORDER BY x.sequence)
    ) e;
    found_last := coalesce(found_last, chain.anchor_sequence);
    IF found_broken IS NULL AND (found_last <> chain.last_sequence
        OR coalesce(found_hash, chain.anchor_hash) <> chain.last_hash) THEN
      found_broken := found_last + 1;
    END IF;
    UPDATE public.core_auditchain c SET
      broken_sequence = found_broken,
      verified_sequence = CASE WHEN found_broken IS NULL THEN found_last ELSE found_broken - 1 END,
      verified_at = clock_timestamp()
    WHERE c.id = chain.id;
    RETURN QUERY SELECT chain.workspace_id, found_count, found_last, found_broken;
  END LOOP;
  -- Entries whose chain has no head cannot be appended; they are somebody's doing.
  RETURN QUERY SELECT x.workspace_id, count(*), max(x.sequence), min(x.sequence)
  FROM public.core_auditentry x
  WHERE NOT EXISTS (SELECT FROM public.core_auditchain c
                    WHERE c.workspace_id = x.workspace_id OR c.workspace_id IS NULL AND x.workspace_id IS NULL)
  GROUP BY x.workspace_id;
END
"""

# Only ever the beginning of a chain goes, so that what is left still follows from the anchor.
AUDIT_PRUNE = """
DECLARE
  chain public.core_auditchain;
  stop bigint;
  last public.core_auditentry;
  gone bigint := 0;
  due timestamptz := least(cutoff, statement_timestamp() - interval '1826 days');
BEGIN
  PERFORM pg_advisory_xact_lock(1835099508, 0);
  FOR chain IN SELECT * FROM public.core_auditchain c ORDER BY c.workspace_id NULLS FIRST LOOP
    EXIT WHEN gone >= batch;
    SELECT min(e.sequence) INTO stop FROM public.core_auditentry e
    WHERE (e.workspace_id = chain.workspace_id OR chain.workspace_id IS NULL AND e.workspace_id IS NULL)
      AND (e.recorded_at >= due OR e.id = ANY (held));
    SELECT * INTO last FROM public.core_auditentry e
    WHERE (e.workspace_id = chain.workspace_id OR chain.workspace_id IS NULL AND e.workspace_id IS NULL)
      AND e.sequence <= chain.anchor_sequence + batch - gone AND (stop IS NULL OR e.sequence < stop)
    ORDER BY e.sequence DESC LIMIT 1;
    CONTINUE WHEN NOT FOUND;
    UPDATE public.core_auditchain c SET anchor_sequence = last.sequence, anchor_hash = last.hash
    WHERE c.id = chain.id;
    DELETE FROM public.core_auditentry e
    WHERE (e.workspace_id = chain.workspace_id OR chain.workspace_id IS NULL AND e.workspace_id IS NULL)
      AND e.sequence <= last.sequence;
    gone := gone + last.sequence - chain.anchor_sequence;
  END LOOP;
  RETURN gone;
END
"""

POLICY_ORDER = """
DECLARE newest public.core_storedpolicy;
BEGIN
  SELECT * INTO newest FROM public.core_storedpolicy p
  WHERE p.kind = NEW.kind
    AND (p.workspace_id = NEW.workspace_id OR NEW.workspace_id IS NULL AND p.workspace_id IS NULL)
  ORDER BY p.version DESC LIMIT 1;
  IF NEW.effective_from < statement_timestamp() THEN
    RAISE check_violation USING MESSAGE = 'a policy takes effect now or later',
      CONSTRAINT = 'core_storedpolicy_not_past';
  END IF;
  IF NEW.version <> coalesce(newest.version, 0) + 1 OR NEW.effective_from <= newest.effective_from THEN
    RAISE check_violation USING MESSAGE = 'a policy follows the one before',
      CONSTRAINT = 'core_storedpolicy_in_order';
  END IF;
  RETURN NEW;
END
"""

POLICY_FIXED = """
BEGIN
  RAISE check_violation USING MESSAGE = 'a stored policy does not change',
    CONSTRAINT = 'core_storedpolicy_append_only';
END
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0002_row_policies_and_functions"),
        ("core", "0001_audit_keys_and_policies"),
    ]

    operations = [
        ApplyRowPolicy("core", "AuditChain", AUDIT_CHAIN),
        ApplyRowPolicy("core", "AuditEntry", AUDIT_ENTRY),
        ApplyRowPolicy("core", "IdempotencyKey", OwnerPolicy()),
        ApplyRowPolicy("core", "StoredPolicy", STORED_POLICY),
        DefineFunction(
            "core_audit_hash",
            AUDIT_HASH_ARGS,
            "text",
            AUDIT_HASH,
            security_definer=False,
            volatility="STABLE",
        ),
        DefineFunction(
            "core_audit_append",
            "entry uuid, wanted uuid, action text, object_type text, object_id text, reason text, before text, "
            "after text, details jsonb, request text",
            "bigint",
            AUDIT_APPEND,
            language="plpgsql",
            execute=(API, STAFF, MAINTENANCE),
        ),
        DefineFunction(
            "core_audit_verify",
            "",
            "TABLE (workspace_id uuid, entries bigint, through bigint, broken bigint)",
            AUDIT_VERIFY,
            language="plpgsql",
            execute=(MAINTENANCE,),
        ),
        DefineFunction(
            "core_audit_prune",
            "cutoff timestamptz, batch int, held uuid[]",
            "bigint",
            AUDIT_PRUNE,
            language="plpgsql",
            execute=(MAINTENANCE,),
        ),
        DefineFunction("core_storedpolicy_order", "", "trigger", POLICY_ORDER, language="plpgsql"),
        DefineFunction("core_storedpolicy_fixed", "", "trigger", POLICY_FIXED, language="plpgsql"),
        AddTrigger(
            "core", "StoredPolicy", "core_storedpolicy_order", "BEFORE INSERT", "core_storedpolicy_order"
        ),
        AddTrigger(
            "core", "StoredPolicy", "core_storedpolicy_fixed", "BEFORE UPDATE", "core_storedpolicy_fixed"
        ),
    ]
