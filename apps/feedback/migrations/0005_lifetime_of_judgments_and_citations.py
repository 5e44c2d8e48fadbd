"""Judgments and citations are their owner's, go with their receipt or by age, and free the receipts they kept."""

from importlib import import_module

from django.db import migrations

from apps.core.db.operations import AddOwnerForeignKey, AddTrigger, ApplyRowPolicy, DefineFunction
from apps.core.db.rowpolicy import OwnerPolicy

TRACES = import_module("apps.traces.migrations.0003_functions_of_retention")
OWN = TRACES.OWN
HOLD_KINDS = TRACES.HOLD_KINDS

DAYS = """
  SELECT coalesce((
    SELECT (p.document ->> 'retention_days')::int FROM public.core_storedpolicy p
    WHERE p.kind = 'gate' AND p.effective_from <= statement_timestamp()
      AND (p.workspace_id = workspace OR p.workspace_id IS NULL)
    ORDER BY p.workspace_id IS NULL, p.effective_from DESC LIMIT 1), 730)
"""

# However a record goes: its key goes, and a receipt that nothing keeps any more.
RECORDS_GONE = """
BEGIN
  DELETE FROM public.core_idempotencykey k USING old_rows o
  WHERE k.principal_id = o.principal_id AND k.receipt_id = o.id;
  PERFORM public.retrieval_let_go(ARRAY(SELECT o.id FROM old_rows o));
  RETURN NULL;
END
"""

# A row of either table, its workspace's term having passed, that no hold covers.
DUE = """
    WHERE space.id = due.workspace_id AND due.admitted_at <= space.until
      AND NOT public.operations_held(ARRAY['traces.principal', 'traces.trace'], ARRAY[due.principal_id,
        (SELECT r.trace_id FROM public.retrieval_receipt r
         WHERE r.principal_id = due.principal_id AND r.id = due.receipt_id)])
"""
SPACE = """
    (SELECT w.id, {till} - make_interval(days => public.feedback_retention_days(w.id)) AS until
     FROM public.accounts_workspace w) space
"""
TILL = "least(cutoff, statement_timestamp())"

# One principal a call, under its lock; one that fails is passed over and keeps nobody else's rows.
EXPIRE = f"""
DECLARE
  most int := greatest(1, least(batch, 5000));
  owner uuid;
  passed uuid[] := '{{}}';
BEGIN
  judgments := 0; citations := 0; failed := 0;
  PERFORM public.operations_hold_lock({HOLD_KINDS});
  LOOP
    SELECT found.principal_id INTO owner FROM {SPACE.format(till=TILL)}
    CROSS JOIN LATERAL (
      (SELECT due.principal_id FROM public.feedback_judgment due {DUE}
       AND due.principal_id <> ALL (passed) ORDER BY due.admitted_at LIMIT 1)
      UNION ALL
      (SELECT due.principal_id FROM public.feedback_citation due {DUE}
       AND due.principal_id <> ALL (passed) ORDER BY due.admitted_at LIMIT 1)) found LIMIT 1;
    EXIT WHEN owner IS NULL;
    passed := passed || owner;
    BEGIN
      PERFORM pg_advisory_xact_lock({TRACES.PRINCIPAL_SPACE}, hashtext(owner::text));
      DELETE FROM public.feedback_judgment j WHERE j.id IN (
        SELECT due.id FROM {SPACE.format(till=TILL)}, public.feedback_judgment due {DUE}
        AND due.principal_id = owner ORDER BY due.admitted_at, due.id LIMIT most);
      GET DIAGNOSTICS judgments = ROW_COUNT;
      DELETE FROM public.feedback_citation c WHERE c.id IN (
        SELECT due.id FROM {SPACE.format(till=TILL)}, public.feedback_citation due {DUE}
        AND due.principal_id = owner ORDER BY due.admitted_at, due.id LIMIT most - judgments);
      GET DIAGNOSTICS citations = ROW_COUNT;
      EXIT WHEN judgments + citations > 0;
    EXCEPTION
      WHEN query_canceled OR lock_not_available OR deadlock_detected OR admin_shutdown THEN RAISE;
      WHEN OTHERS THEN judgments := 0; citations := 0; failed := failed + 1;
    END;
  END LOOP;
  RETURN NEXT;
END
"""

STATUS = f"""
  SELECT count(*) FILTER (WHERE late.judgment), count(*) FILTER (WHERE NOT late.judgment),
    coalesce(max(extract(epoch FROM late.until - late.admitted_at))::float8, 0)
  FROM (
    SELECT true AS judgment, due.admitted_at, space.until
    FROM {SPACE.format(till="statement_timestamp()")}, public.feedback_judgment due {DUE}
    UNION ALL
    SELECT false, due.admitted_at, space.until
    FROM {SPACE.format(till="statement_timestamp()")}, public.feedback_citation due {DUE}) late
"""

# The operator of arrays is not leakproof, so under a row policy it would lose its index.
OF_NODE = f"""
  SELECT j.id FROM public.feedback_judgment j WHERE j.node_ids @> ARRAY[node] AND j.principal_id = {OWN}
"""

JUDGMENT, CITATION = ("feedback", "Judgment"), ("feedback", "CitationSet")
POLICY = OwnerPolicy(staff="view_traces", append_only=True)


class Migration(migrations.Migration):
    dependencies = [
        ("feedback", "0004_judgments_and_citations"),
        ("retrieval", "0005_receipts_outlive_traces"),
    ]

    operations = [
        *(ApplyRowPolicy(*model, POLICY) for model in (JUDGMENT, CITATION)),
        *(AddOwnerForeignKey(*model, "receipt", "retrieval.Receipt") for model in (JUDGMENT, CITATION)),
        DefineFunction("feedback_records_gone", "", "trigger", RECORDS_GONE, language="plpgsql"),
        *(
            AddTrigger(
                *model,
                "feedback_records_gone",
                "AFTER DELETE",
                "feedback_records_gone",
                each="STATEMENT",
                referencing="OLD TABLE AS old_rows",
            )
            for model in (JUDGMENT, CITATION)
        ),
        DefineFunction("feedback_retention_days", "workspace uuid", "int", DAYS, volatility="STABLE"),
        DefineFunction(
            "feedback_labels_expire",
            "batch int, cutoff timestamptz",
            "TABLE (judgments bigint, citations bigint, failed bigint)",
            EXPIRE,
            language="plpgsql",
            execute=("memory_maintenance",),
        ),
        DefineFunction(
            "feedback_labels_status",
            "",
            "TABLE (expired_judgments bigint, expired_citations bigint, oldest_overdue_seconds float8)",
            STATUS,
            volatility="STABLE",
            execute=("memory_monitor",),
        ),
        DefineFunction(
            "feedback_judgments_of_node",
            "node uuid",
            "SETOF uuid",
            OF_NODE,
            volatility="STABLE",
            execute=("memory_api",),
        ),
    ]
