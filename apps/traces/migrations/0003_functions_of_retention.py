"""The narrow functions that delete, erase and measure traces; nobody else may.

Order of locks in each: holds, the principal, then rows. A trace goes with its keys, its retrieval receipt and
all that hangs on it, in one transaction, after what it lent to edges has been taken back.
"""

from django.db import migrations

from apps.core.db.operations import DefineFunction

PRINCIPAL_SPACE = 1836085870
HOLD_KINDS = "ARRAY['traces.trace', 'traces.principal']"
OWN = "nullif(current_setting('memory.principal_id', true), '')::uuid"


def held(table):
    """A hold covers the trace of that row, or all traces of its principal."""
    return f"public.operations_held({HOLD_KINDS}, ARRAY[{table}.id, {table}.principal_id])"


# The same rule as apps.traces.decay; a test compares the two.
DECAY = """
  SELECT CASE WHEN v < 1e-200::float8 OR age.half_lives >= 100 THEN 0::float8
              WHEN age.half_lives <= 0 THEN v ELSE v * power(2::float8, -age.half_lives) END
  FROM (SELECT extract(epoch FROM till - since)::float8 / half_life_s AS half_lives) age
"""

POLICY = """
  SELECT p.document FROM public.core_storedpolicy p
  WHERE p.kind = 'memory' AND p.effective_from <= statement_timestamp()
    AND (p.workspace_id = workspace OR p.workspace_id IS NULL)
  ORDER BY p.workspace_id IS NULL, p.effective_from DESC LIMIT 1
"""

HALF_LIFE = """
  SELECT coalesce((public.traces_policy(workspace) ->> 'half_life_s')::float8, 3600)
"""

DAYS = """
  SELECT coalesce((public.traces_policy(workspace) -> 'retention_days' ->> class)::int,
                  CASE class WHEN 'trace' THEN 90 ELSE 30 END)
"""

# Apps above replace this with what must happen before traces go.
BEFORE_DELETE = "SELECT"

DELETE = """
DECLARE gone bigint; receipts uuid[];
BEGIN
  PERFORM public.traces_before_delete(owner, wanted);
  SELECT array_agg(t.retrieval_receipt_id) FILTER (WHERE t.retrieval_receipt_id IS NOT NULL) INTO receipts
  FROM public.traces_trace t WHERE t.principal_id = owner AND t.id = ANY (wanted);
  DELETE FROM public.core_idempotencykey k USING public.traces_action_receipt r
  WHERE r.principal_id = owner AND r.trace_id = ANY (wanted)
    AND k.principal_id = owner AND k.receipt_id = r.id;
  DELETE FROM public.traces_trace t WHERE t.principal_id = owner AND t.id = ANY (wanted);
  GET DIAGNOSTICS gone = ROW_COUNT;
  PERFORM public.traces_after_delete(owner, receipts);
  RETURN gone;
END
"""

ERASE_OWN = f"""
DECLARE owner uuid := {OWN};
BEGIN
  PERFORM public.operations_hold_lock({HOLD_KINDS});
  PERFORM pg_advisory_xact_lock({PRINCIPAL_SPACE}, hashtext(owner::text));
  PERFORM FROM public.traces_trace t
  WHERE t.principal_id = owner AND t.id = wanted AND t.expires_at > statement_timestamp() FOR UPDATE;
  IF NOT FOUND THEN
    RETURN 'absent';
  END IF;
  IF public.operations_held({HOLD_KINDS}, ARRAY[wanted, owner]) THEN
    RETURN 'held';
  END IF;
  PERFORM public.traces_delete(owner, ARRAY[wanted]);
  RETURN 'erased';
END
"""

# One principal a call. A batch that fails is undone alone and the next principal is taken, so that it keeps nobody
# else's rows; timeouts are the caller's, who then asks for less.
EXPIRE = f"""
DECLARE
  till timestamptz := least(cutoff, statement_timestamp());
  most int := greatest(1, least(batch, 1000));
  owner uuid;
  wanted uuid[];
  passed uuid[] := '{{}}';
BEGIN
  traces := 0; failed := 0;
  PERFORM public.operations_hold_lock({HOLD_KINDS});
  LOOP
    SELECT t.principal_id INTO owner FROM public.traces_trace t
    WHERE t.expires_at <= till AND t.principal_id <> ALL (passed) AND NOT {held("t")}
    ORDER BY t.expires_at LIMIT 1;
    EXIT WHEN owner IS NULL;
    passed := passed || owner;
    BEGIN
      PERFORM pg_advisory_xact_lock({PRINCIPAL_SPACE}, hashtext(owner::text));
      SELECT array_agg(due.id) INTO wanted FROM (
        SELECT t.id FROM public.traces_trace t
        WHERE t.principal_id = owner AND t.expires_at <= till AND NOT {held("t")}
        ORDER BY t.recorded_at, t.id LIMIT most FOR UPDATE SKIP LOCKED) due;
      IF wanted IS NOT NULL THEN
        traces := public.traces_delete(owner, wanted);
        EXIT WHEN traces > 0;
      END IF;
    EXCEPTION
      WHEN query_canceled OR lock_not_available OR deadlock_detected OR admin_shutdown THEN RAISE;
      WHEN OTHERS THEN failed := failed + 1;
    END;
  END LOOP;
  RETURN NEXT;
END
"""

ERASE_TEXT = f"""
DECLARE
  till timestamptz := least(cutoff, statement_timestamp());
  most int := greatest(1, least(batch, 5000));
  space record;
  done bigint;
BEGIN
  queries := 0; reasons := 0;
  PERFORM public.operations_hold_lock({HOLD_KINDS});
  FOR space IN SELECT w.id, till - make_interval(days => public.traces_retention_days(w.id, 'trace_text')) AS until
               FROM public.accounts_workspace w ORDER BY w.id LOOP
    UPDATE public.traces_trace t SET query = NULL, query_erased_at = statement_timestamp()
    WHERE t.id IN (
      SELECT due.id FROM public.traces_trace due
      WHERE due.workspace_id = space.id AND due.recorded_at <= space.until AND due.query IS NOT NULL
        AND NOT {held("due")}
      ORDER BY due.recorded_at LIMIT most - queries FOR UPDATE SKIP LOCKED);
    GET DIAGNOSTICS done = ROW_COUNT;
    queries := queries + done;
    UPDATE public.traces_action_receipt r SET reason = NULL
    WHERE r.id IN (
      SELECT due.id FROM public.traces_action_receipt due
      WHERE due.workspace_id = space.id AND due.recorded_at <= space.until AND due.reason IS NOT NULL
        AND NOT public.operations_held({HOLD_KINDS}, ARRAY[due.trace_id, due.principal_id])
      ORDER BY due.recorded_at LIMIT most - reasons FOR UPDATE SKIP LOCKED);
    GET DIAGNOSTICS done = ROW_COUNT;
    reasons := reasons + done;
  END LOOP;
  RETURN NEXT;
END
"""

PRUNE_ACTIVATION = """
  WITH space AS MATERIALIZED (
    SELECT w.id, public.traces_half_life(w.id) AS half_life_s,
      least(cutoff, statement_timestamp())
        - make_interval(days => public.traces_retention_days(w.id, 'activation')) AS until
    FROM public.accounts_workspace w
  ), due AS (
    SELECT a.id FROM public.traces_activation a JOIN space ON space.id = a.workspace_id
    WHERE a.updated_at <= space.until
      AND public.traces_decay(a.retrieved, a.updated_at, statement_timestamp(), space.half_life_s)
        + public.traces_decay(a.usage, a.updated_at, statement_timestamp(), space.half_life_s) < 1e-6
    ORDER BY a.updated_at LIMIT greatest(1, least(batch, 5000)) FOR UPDATE OF a SKIP LOCKED
  ), gone AS (
    DELETE FROM public.traces_activation a USING due WHERE a.id = due.id RETURNING 1
  ) SELECT count(*) FROM gone
"""

STATUS = f"""
  SELECT count(*), coalesce(extract(epoch FROM statement_timestamp() - min(t.expires_at))::float8, 0)
  FROM public.traces_trace t WHERE t.expires_at <= statement_timestamp() AND NOT {held("t")}
"""

TEXT_STATUS = f"""
  SELECT count(due.recorded_at), coalesce(max(extract(epoch FROM due.until - due.recorded_at))::float8, 0)
  FROM (
    SELECT t.recorded_at, space.until
    FROM (SELECT w.id, statement_timestamp()
            - make_interval(days => public.traces_retention_days(w.id, 'trace_text')) AS until
          FROM public.accounts_workspace w) space
    CROSS JOIN LATERAL (
      SELECT old.recorded_at FROM public.traces_trace old
      WHERE old.workspace_id = space.id AND old.recorded_at <= space.until AND old.query IS NOT NULL
        AND NOT {held("old")}
      UNION ALL
      SELECT old.recorded_at FROM public.traces_action_receipt old
      WHERE old.workspace_id = space.id AND old.recorded_at <= space.until AND old.reason IS NOT NULL
        AND NOT public.operations_held({HOLD_KINDS}, ARRAY[old.trace_id, old.principal_id])) t
  ) due
"""

MEASURE = """
  SELECT w.id, 'traces_recorded', coalesce(t.recording ->> 'status', 'complete'), count(*)::float8
  FROM public.accounts_workspace w
  JOIN public.traces_trace t ON t.workspace_id = w.id AND t.recorded_at > since
  GROUP BY w.id, 3
  UNION ALL
  SELECT w.id, 'traces_latency_ms', q.quantile::text,
    percentile_disc(q.quantile) WITHIN GROUP (ORDER BY t.latency_ms)::float8
  FROM public.accounts_workspace w
  JOIN public.traces_trace t ON t.workspace_id = w.id AND t.recorded_at > since
  CROSS JOIN (VALUES (0.5::float8), (0.95::float8)) q (quantile)
  GROUP BY w.id, q.quantile
  UNION ALL
  SELECT w.id, 'traces_oldest_seconds', '', extract(epoch FROM statement_timestamp() - oldest.recorded_at)::float8
  FROM public.accounts_workspace w
  CROSS JOIN LATERAL (
    SELECT t.recorded_at FROM public.traces_trace t
    WHERE t.workspace_id = w.id AND t.expires_at > statement_timestamp()
    ORDER BY t.recorded_at, t.id LIMIT 1) oldest
"""

# A default rules every workspace that has no policy of its own in effect.
FOLLOWERS = """
  SELECT w.id FROM public.accounts_workspace w
  WHERE w.id = workspace OR workspace IS NULL AND NOT EXISTS (
    SELECT FROM public.core_storedpolicy p
    WHERE p.kind = 'memory' AND p.workspace_id = w.id AND p.effective_from <= statement_timestamp())
"""

HOLDS_ACTIVATION = """
  SELECT EXISTS (
    SELECT FROM public.traces_policy_followers(workspace) follower
    JOIN public.accounts_principal p ON p.workspace_id = follower
    WHERE EXISTS (SELECT FROM public.traces_activation a WHERE a.principal_id = p.id))
"""


class Migration(migrations.Migration):
    dependencies = [
        ("traces", "0002_row_policies_and_owner_keys"),
        ("core", "0002_row_policies_and_audit_functions"),
    ]

    operations = [
        DefineFunction(
            "traces_decay",
            "v float8, since timestamptz, till timestamptz, half_life_s float8",
            "float8",
            DECAY,
            security_definer=False,
            volatility="IMMUTABLE",
            execute=("memory_staff",),
        ),
        DefineFunction("traces_policy", "workspace uuid", "jsonb", POLICY, volatility="STABLE"),
        DefineFunction("traces_half_life", "workspace uuid", "float8", HALF_LIFE, volatility="STABLE"),
        DefineFunction(
            "traces_retention_days", "workspace uuid, class text", "int", DAYS, volatility="STABLE"
        ),
        DefineFunction("traces_before_delete", "owner uuid, wanted uuid[]", "void", BEFORE_DELETE),
        DefineFunction("traces_after_delete", "owner uuid, receipts uuid[]", "void", BEFORE_DELETE),
        DefineFunction("traces_delete", "owner uuid, wanted uuid[]", "bigint", DELETE, language="plpgsql"),
        DefineFunction(
            "traces_erase_own", "wanted uuid", "text", ERASE_OWN, language="plpgsql", execute=("memory_api",)
        ),
        DefineFunction(
            "traces_expire",
            "batch int, cutoff timestamptz",
            "TABLE (traces bigint, failed bigint)",
            EXPIRE,
            language="plpgsql",
            execute=("memory_maintenance",),
        ),
        DefineFunction(
            "traces_erase_text",
            "batch int, cutoff timestamptz",
            "TABLE (queries bigint, reasons bigint)",
            ERASE_TEXT,
            language="plpgsql",
            execute=("memory_maintenance",),
        ),
        DefineFunction(
            "traces_prune_activation",
            "batch int, cutoff timestamptz",
            "bigint",
            PRUNE_ACTIVATION,
            execute=("memory_maintenance",),
        ),
        DefineFunction(
            "traces_status",
            "",
            "TABLE (expired_traces bigint, oldest_overdue_seconds float8)",
            STATUS,
            volatility="STABLE",
            execute=("memory_monitor",),
        ),
        DefineFunction(
            "traces_text_status",
            "",
            "TABLE (expired_texts bigint, oldest_overdue_seconds float8)",
            TEXT_STATUS,
            volatility="STABLE",
            execute=("memory_monitor",),
        ),
        DefineFunction(
            "traces_measure",
            "since timestamptz",
            "TABLE (workspace_id uuid, name text, label text, value float8)",
            MEASURE,
            volatility="STABLE",
            execute=("memory_monitor",),
        ),
        DefineFunction(
            "traces_policy_followers", "workspace uuid", "SETOF uuid", FOLLOWERS, volatility="STABLE"
        ),
        DefineFunction(
            "traces_holds_activation",
            "workspace uuid",
            "boolean",
            HOLDS_ACTIVATION,
            volatility="STABLE",
            execute=("memory_staff",),
        ),
    ]
