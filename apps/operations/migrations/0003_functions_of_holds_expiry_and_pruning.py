"""The narrow functions of operations: holds under lock, state of expiry, pruning by fixed terms."""

from django.db import migrations

from apps.core.db.operations import AddTrigger, DefineFunction

# Advisory locks of holds: the first key, 1752132708, spells "hold" in ASCII; the second is the kind's hash.

HELD = """
  SELECT EXISTS (
    SELECT FROM public.operations_holditem item
    JOIN public.operations_legalhold held ON held.id = item.hold_id AND held.released_at IS NULL
    JOIN unnest(kinds, ids) AS asked (kind, id) ON asked.kind = item.kind AND asked.id = item.object_id)
"""

LOCK = """
DECLARE wanted text;
BEGIN
  FOR wanted IN SELECT DISTINCT given FROM unnest(kinds) given ORDER BY given LOOP
    PERFORM pg_advisory_xact_lock_shared(1752132708, hashtext(wanted));
  END LOOP;
END
"""

# Two statements: the second one's snapshot is taken once the lock is held.
CHECK = """
BEGIN
  PERFORM public.operations_hold_lock(kinds);
  RETURN public.operations_held(kinds, ids);
END
"""

ITEM_ADDED = """
BEGIN
  -- Waits for deletions of this kind that are under way; later ones see the item.
  PERFORM pg_advisory_xact_lock(1752132708, hashtext(NEW.kind));
  IF EXISTS (SELECT FROM public.operations_legalhold held
             WHERE held.id = NEW.hold_id AND held.released_at IS NOT NULL) THEN
    RAISE EXCEPTION 'hold_released' USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END
"""

HOLD_CHANGED = """
BEGIN
  IF OLD.released_at IS NOT NULL
     OR (NEW.id, NEW.workspace_id, NEW.reference, NEW.reason, NEW.placed_by_id, NEW.placed_at)
        IS DISTINCT FROM
        (OLD.id, OLD.workspace_id, OLD.reference, OLD.reason, OLD.placed_by_id, OLD.placed_at) THEN
    RAISE EXCEPTION 'hold_is_fixed' USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END
"""

EXPIRY_MOVED = """
  INSERT INTO public.operations_expirystate AS state
    (name, last_success_at, last_drained_at, processed_count, last_failure_code, consecutive_failures)
  VALUES (kind, clock_timestamp(), CASE WHEN drained THEN clock_timestamp() END, processed, '', 0)
  ON CONFLICT (name) DO UPDATE SET
    last_success_at = clock_timestamp(),
    last_drained_at = CASE WHEN drained THEN clock_timestamp() ELSE state.last_drained_at END,
    processed_count = state.processed_count + excluded.processed_count,
    consecutive_failures = CASE WHEN drained THEN 0 ELSE state.consecutive_failures END
"""

EXPIRY_KNOWN = """
  INSERT INTO public.operations_expirystate (name, processed_count, last_failure_code, consecutive_failures)
  VALUES (kind, 0, '', 0) ON CONFLICT (name) DO NOTHING
"""

EXPIRY_FAILED = """
  INSERT INTO public.operations_expirystate AS state
    (name, processed_count, last_failure_at, last_failure_code, consecutive_failures)
  VALUES (kind, 0, clock_timestamp(), code, 1)
  ON CONFLICT (name) DO UPDATE SET
    last_failure_at = clock_timestamp(), last_failure_code = excluded.last_failure_code,
    consecutive_failures = state.consecutive_failures + 1
"""

EXPIRY_STATE = """
  SELECT statement_timestamp(), state.last_success_at,
         extract(epoch FROM statement_timestamp() - state.last_success_at)::float8,
         state.last_drained_at, state.processed_count, coalesce(state.consecutive_failures, 0),
         state.last_failure_at, coalesce(state.last_failure_code, ''), state.known_since
  FROM (SELECT) one LEFT JOIN public.operations_expirystate state ON state.name = kind
"""


def prune(table, condition, key="id"):
    """Deletes up to `batch` rows that are older than their term, counted from a cut-off that is never ahead."""
    return f"""
      WITH due AS (
        SELECT old.{key} FROM public.{table} old WHERE {condition}
        ORDER BY old.{key} LIMIT greatest(1, least(batch, 5000)) FOR UPDATE SKIP LOCKED
      ), gone AS (
        DELETE FROM public.{table} old USING due WHERE old.{key} = due.{key} RETURNING 1
      ) SELECT count(*) FROM gone
    """


CUTOFF = "least(cutoff, statement_timestamp())"
TERMS = {
    "job_runs": prune("operations_jobrun", f"old.started_at < {CUTOFF} - interval '90 days'"),
    "samples": prune("operations_sample", f"old.at < {CUTOFF} - interval '400 days'"),
    "newest_samples": prune("operations_newestsample", f"old.at < {CUTOFF} - interval '400 days'"),
    "deliveries": prune("operations_delivery", f"old.created_at < {CUTOFF} - interval '400 days'"),
    "alarms": prune("operations_alarm", f"old.resolved_at < {CUTOFF} - interval '400 days'"),
    "processes": prune("operations_process", f"old.seen_at < {CUTOFF} - interval '1 day'"),
    "leases": prune("operations_lease", f"old.expires_at < {CUTOFF} - interval '1 day'", key="key"),
    "holds": prune("operations_legalhold", f"old.released_at < {CUTOFF} - interval '1826 days'"),
}
SESSIONS = ("memory_api", "memory_staff", "memory_maintenance")
# table, constraint, key
CASCADES = (
    (
        "operations_holditem",
        "hold",
        "(workspace_id, hold_id) REFERENCES operations_legalhold (workspace_id, id)",
    ),
    ("operations_delivery", "alarm", "(alarm_id) REFERENCES operations_alarm (id)"),
    ("operations_delivery", "destination", "(destination_id) REFERENCES operations_destination (id)"),
)


class Migration(migrations.Migration):
    dependencies = [("operations", "0002_row_policies")]

    operations = [
        *(
            migrations.RunSQL(
                f"ALTER TABLE {table} ADD CONSTRAINT {table}_{name}_cascade FOREIGN KEY {key} ON DELETE CASCADE",
                f"ALTER TABLE {table} DROP CONSTRAINT {table}_{name}_cascade",
            )
            for table, name, key in CASCADES
        ),
        DefineFunction(
            "operations_held",
            "kinds text[], ids uuid[]",
            "boolean",
            HELD,
            execute=SESSIONS,
            volatility="STABLE",
        ),
        DefineFunction(
            "operations_hold_lock", "kinds text[]", "void", LOCK, execute=SESSIONS, language="plpgsql"
        ),
        DefineFunction(
            "operations_hold_check",
            "kinds text[], ids uuid[]",
            "boolean",
            CHECK,
            execute=SESSIONS,
            language="plpgsql",
        ),
        DefineFunction("operations_hold_item_added", "", "trigger", ITEM_ADDED, language="plpgsql"),
        DefineFunction("operations_hold_changed", "", "trigger", HOLD_CHANGED, language="plpgsql"),
        AddTrigger(
            "operations",
            "HoldItem",
            "operations_holditem_lock",
            "BEFORE INSERT OR UPDATE",
            "operations_hold_item_added",
        ),
        AddTrigger(
            "operations",
            "LegalHold",
            "operations_legalhold_fixed",
            "BEFORE UPDATE",
            "operations_hold_changed",
        ),
        DefineFunction(
            "operations_expiry_moved",
            "kind text, processed bigint, drained boolean",
            "void",
            EXPIRY_MOVED,
            execute=("memory_maintenance",),
        ),
        DefineFunction(
            "operations_expiry_known",
            "kind text",
            "void",
            EXPIRY_KNOWN,
            execute=("memory_maintenance",),
        ),
        DefineFunction(
            "operations_expiry_failed",
            "kind text, code text",
            "void",
            EXPIRY_FAILED,
            execute=("memory_maintenance",),
        ),
        DefineFunction(
            "operations_expiry_state",
            "kind text",
            "TABLE (checked_at timestamptz, last_success_at timestamptz, seconds_since_success float8, "
            "last_drained_at timestamptz, processed_count bigint, consecutive_failures int, "
            "last_failure_at timestamptz, last_failure_code text, known_since timestamptz)",
            EXPIRY_STATE,
            execute=("memory_monitor",),
            volatility="STABLE",
        ),
        *(
            DefineFunction(
                f"operations_prune_{name}",
                "batch int, cutoff timestamptz",
                "bigint",
                body,
                execute=("memory_maintenance",),
            )
            for name, body in TERMS.items()
        ),
    ]
