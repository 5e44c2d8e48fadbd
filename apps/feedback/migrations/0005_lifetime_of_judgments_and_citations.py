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

SPACE = """
    (SELECT w.id, {till} - make_interval(days => public.feedback_retention_days(w.id)) AS until
     FROM public.accounts_workspace w) space
"""


def due(table, space="space.id", until="space.until", more=""):
    """Rows of the table in that workspace, as old as that and oldest first, that no hold covers.

    OFFSET 0 keeps the age before the holds, which cost a function call a row.
    """
    return f"""
      SELECT aged.id, aged.principal_id, aged.admitted_at FROM (
        SELECT old.id, old.principal_id, old.receipt_id, old.admitted_at FROM public.{table} old
        WHERE old.workspace_id = {space} AND old.admitted_at <= {until}{more} ORDER BY old.admitted_at OFFSET 0) aged
      WHERE NOT public.operations_held(ARRAY['traces.principal', 'traces.trace'], ARRAY[aged.principal_id,
        (SELECT r.trace_id FROM public.retrieval_receipt r
         WHERE r.principal_id = aged.principal_id AND r.id = aged.receipt_id)])
    """


def delete_due(table):
    own = due(table, "own_space", "until", " AND old.principal_id = owner")
    return f"""
      DELETE FROM public.{table} gone WHERE gone.id IN (SELECT due.id FROM ({own}) due LIMIT most);
    """


def any_due(table):
    return f"(SELECT due.principal_id FROM ({due(table, more=' AND old.principal_id <> ALL (passed)')}) due LIMIT 1)"


TILL = "least(cutoff, statement_timestamp())"

# One principal a call, under its lock; one that fails is passed over and keeps nobody else's rows.
EXPIRE = f"""
DECLARE
  most int := greatest(1, least(batch, 5000));
  owner uuid;
  own_space uuid;
  until timestamptz;
  passed uuid[] := '{{}}';
BEGIN
  judgments := 0; citations := 0; failed := 0;
  PERFORM public.operations_hold_lock({HOLD_KINDS});
  LOOP
    SELECT found.principal_id, space.id, space.until INTO owner, own_space, until
    FROM {SPACE.format(till=TILL)} CROSS JOIN LATERAL (
      {any_due("feedback_judgment")} UNION ALL {any_due("feedback_citation")}) found LIMIT 1;
    EXIT WHEN owner IS NULL;
    passed := passed || owner;
    BEGIN
      PERFORM pg_advisory_xact_lock({TRACES.PRINCIPAL_SPACE}, hashtext(owner::text));
      {delete_due("feedback_judgment")}
      GET DIAGNOSTICS judgments = ROW_COUNT;
      {delete_due("feedback_citation")}
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
    FROM {SPACE.format(till="statement_timestamp()")} CROSS JOIN LATERAL ({due("feedback_judgment")}) due
    UNION ALL
    SELECT false, due.admitted_at, space.until
    FROM {SPACE.format(till="statement_timestamp()")} CROSS JOIN LATERAL ({due("feedback_citation")}) due) late
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
