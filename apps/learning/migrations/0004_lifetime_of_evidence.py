"""Evidence keeps its receipts, frees them when it goes, and goes by the days of the gate policy."""

from importlib import import_module

from django.db import migrations

from apps.core.db.operations import AddTrigger, DefineFunction

TRACES = import_module("apps.traces.migrations.0003_functions_of_retention")
HOLD_KINDS = TRACES.HOLD_KINDS

# However a row goes: its key goes, and a receipt that nothing keeps any more.
GONE = """
BEGIN
  DELETE FROM public.core_idempotencykey k USING old_rows o
  WHERE k.principal_id = o.principal_id AND k.receipt_id = o.id;
  PERFORM public.retrieval_let_go(ARRAY(SELECT o.id FROM old_rows o));
  RETURN NULL;
END
"""

SPACE = """
    (SELECT w.id, {till} - make_interval(days => public.feedback_retention_days(w.id)) AS until
     FROM public.accounts_workspace w) space
"""
TILL = "least(cutoff, statement_timestamp())"
# A row whose workspace's term has passed, that no hold covers and nothing stands on.
DUE = """
    WHERE space.id = due.workspace_id AND due.{at} <= space.until
      AND NOT public.operations_held(ARRAY['traces.principal'], ARRAY[due.principal_id]) {free}
"""
UNUSED = (
    "AND NOT EXISTS (SELECT FROM public.learning_holdout h "
    "WHERE h.principal_id = due.principal_id AND h.{column} = due.id)"
)
HOLDOUTS = ("learning_holdout", DUE.format(at="requested_at", free=""))
EVALUATIONS = (
    "learning_evaluation",
    DUE.format(at="requested_at", free=UNUSED.format(column="evaluation_id")),
)
QUERY_SETS = ("learning_query_set", DUE.format(at="created_at", free=UNUSED.format(column="query_set_id")))
KINDS = (HOLDOUTS, EVALUATIONS, QUERY_SETS)


def one_owner(table: str, due: str) -> str:
    return (
        f"(SELECT due.principal_id FROM public.{table} due {due} "
        "AND due.principal_id <> ALL (passed) LIMIT 1)"
    )


def delete(table: str, due: str, counter: str) -> str:
    return f"""
      DELETE FROM public.{table} t WHERE t.id IN (
        SELECT due.id FROM {SPACE.format(till=TILL)}, public.{table} due {due}
        AND due.principal_id = owner ORDER BY due.id LIMIT most);
      GET DIAGNOSTICS {counter} = ROW_COUNT;
"""


# One principal a call, under its lock; one that fails is passed over and keeps nobody else's rows. Holdouts go
# before what they stand on.
EXPIRE = f"""
DECLARE
  most int := greatest(1, least(batch, 1000));
  owner uuid;
  passed uuid[] := '{{}}';
BEGIN
  holdouts := 0; evaluations := 0; query_sets := 0; failed := 0;
  PERFORM public.operations_hold_lock({HOLD_KINDS});
  LOOP
    SELECT found.principal_id INTO owner FROM {SPACE.format(till=TILL)}
    CROSS JOIN LATERAL ({" UNION ALL ".join(one_owner(*kind) for kind in KINDS)}) found LIMIT 1;
    EXIT WHEN owner IS NULL;
    passed := passed || owner;
    BEGIN
      PERFORM pg_advisory_xact_lock({TRACES.PRINCIPAL_SPACE}, hashtext(owner::text));
      {delete(*HOLDOUTS, "holdouts")}
      {delete(*EVALUATIONS, "evaluations")}
      {delete(*QUERY_SETS, "query_sets")}
      EXIT WHEN holdouts + evaluations + query_sets > 0;
    EXCEPTION
      WHEN query_canceled OR lock_not_available OR deadlock_detected OR admin_shutdown THEN RAISE;
      WHEN OTHERS THEN holdouts := 0; evaluations := 0; query_sets := 0; failed := failed + 1;
    END;
  END LOOP;
  RETURN NEXT;
END
"""


def late(table: str, due: str, at: str) -> str:
    return (
        f"SELECT '{table}' AS kind, space.until - due.{at} AS age "
        f"FROM {SPACE.format(till='statement_timestamp()')}, public.{table} due {due}"
    )


STATUS = f"""
  SELECT count(*) FILTER (WHERE late.kind = 'learning_evaluation'),
    count(*) FILTER (WHERE late.kind = 'learning_holdout'),
    count(*) FILTER (WHERE late.kind = 'learning_query_set'),
    coalesce(max(extract(epoch FROM late.age))::float8, 0)
  FROM ({late(*EVALUATIONS, "requested_at")} UNION ALL {late(*HOLDOUTS, "requested_at")}
        UNION ALL {late(*QUERY_SETS, "created_at")}) late
"""

# What nobody works on: never sent, or left by a worker that died. The caller sends it again.
OPEN = """
  SELECT 'evaluation', e.principal_id, e.id FROM public.learning_evaluation e
  WHERE e.status IN ('queued', 'running') AND e.requested_at < statement_timestamp() - idle
  UNION ALL
  SELECT 'holdout', h.principal_id, h.id FROM public.learning_holdout h
  WHERE h.status IN ('queued', 'running') AND h.requested_at < statement_timestamp() - idle
  LIMIT 1000
"""


class Migration(migrations.Migration):
    dependencies = [
        ("feedback", "0005_lifetime_of_judgments_and_citations"),
        ("learning", "0003_default_gate_policy"),
        ("retrieval", "0005_receipts_outlive_traces"),
    ]

    operations = [
        DefineFunction("learning_evidence_gone", "", "trigger", GONE, language="plpgsql"),
        *(
            AddTrigger(
                "learning",
                model,
                "learning_evidence_gone",
                "AFTER DELETE",
                "learning_evidence_gone",
                each="STATEMENT",
                referencing="OLD TABLE AS old_rows",
            )
            for model in ("Evaluation", "Holdout", "QuerySet")
        ),
        DefineFunction(
            "learning_expire",
            "batch int, cutoff timestamptz",
            "TABLE (holdouts bigint, evaluations bigint, query_sets bigint, failed bigint)",
            EXPIRE,
            language="plpgsql",
            execute=("memory_maintenance",),
        ),
        DefineFunction(
            "learning_status",
            "",
            "TABLE (expired_evaluations bigint, expired_holdouts bigint, expired_query_sets bigint, "
            "oldest_overdue_seconds float8)",
            STATUS,
            volatility="STABLE",
            execute=("memory_monitor",),
        ),
        DefineFunction(
            "learning_open_runs",
            "idle interval",
            "TABLE (kind text, principal_id uuid, run_id uuid)",
            OPEN,
            volatility="STABLE",
            execute=("memory_maintenance",),
        ),
    ]
