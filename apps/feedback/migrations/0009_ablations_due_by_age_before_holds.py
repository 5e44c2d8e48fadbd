"""Ablations and assessments that are due are found by their age, before a hold is asked for each of them.

As in 0008: the condition on holds names columns of the row alone, so the planner asked it of every row, due or not.
"""

from importlib import import_module

from django.db import migrations

from apps.core.db.operations import DefineFunction

FORMER = import_module("apps.feedback.migrations.0007_lifetime_of_ablations")
LABELS = FORMER.LABELS
HOLD_KINDS, PRINCIPAL_SPACE = FORMER.TRACES.HOLD_KINDS, FORMER.TRACES.PRINCIPAL_SPACE

# The trace of the receipt that a row stands on.
OF_ABLATION = """(SELECT r.trace_id FROM public.retrieval_receipt r
         WHERE r.principal_id = aged.principal_id AND r.id = aged.stands_on)"""
OF_ASSESSMENT = """(SELECT r.trace_id FROM public.feedback_ablation a JOIN public.retrieval_receipt r
           ON r.principal_id = a.principal_id AND r.id = a.receipt_id
         WHERE a.principal_id = aged.principal_id AND a.id = aged.stands_on)"""
# An ablation stays as long as the youngest of its assessments.
UNASSESSED = """ AND NOT EXISTS (SELECT FROM public.feedback_assessment s
        WHERE s.principal_id = aged.principal_id AND s.ablation_id = aged.id)"""
ABLATIONS = ("feedback_ablation", "receipt_id", OF_ABLATION, UNASSESSED)
ASSESSMENTS = ("feedback_assessment", "ablation_id", OF_ASSESSMENT, "")


def due(kind, space="space.id", until="space.until", more=""):
    """Rows of the kind in that workspace, as old as that and oldest first, that no hold covers.

    OFFSET 0 keeps the age before the holds.
    """
    table, reference, trace, free = kind
    return f"""
      SELECT aged.id, aged.principal_id, aged.admitted_at FROM (
        SELECT old.id, old.principal_id, old.{reference} AS stands_on, old.admitted_at FROM public.{table} old
        WHERE old.workspace_id = {space} AND old.admitted_at <= {until}{more}
        ORDER BY old.admitted_at OFFSET 0) aged
      WHERE NOT public.operations_held(ARRAY['traces.principal', 'traces.trace'], ARRAY[aged.principal_id,
        {trace}]){free}
    """


def any_due(kind):
    return f"(SELECT due.principal_id FROM ({due(kind, more=' AND old.principal_id <> ALL (passed)')}) due LIMIT 1)"


def delete_due(kind, most):
    own = due(kind, "own_space", "until", " AND old.principal_id = owner")
    return (
        f"DELETE FROM public.{kind[0]} gone WHERE gone.id IN (SELECT due.id FROM ({own}) due LIMIT {most});"
    )


# One principal a call, under its lock; one that fails is passed over and keeps nobody else's rows.
EXPIRE = f"""
DECLARE
  most int := greatest(1, least(batch, 5000));
  owner uuid;
  own_space uuid;
  until timestamptz;
  passed uuid[] := '{{}}';
BEGIN
  ablations := 0; assessments := 0; failed := 0;
  PERFORM public.operations_hold_lock({HOLD_KINDS});
  LOOP
    SELECT found.principal_id, space.id, space.until INTO owner, own_space, until
    FROM {LABELS.SPACE.format(till=LABELS.TILL)} CROSS JOIN LATERAL (
      {any_due(ASSESSMENTS)} UNION ALL {any_due(ABLATIONS)}) found LIMIT 1;
    EXIT WHEN owner IS NULL;
    passed := passed || owner;
    BEGIN
      PERFORM pg_advisory_xact_lock({PRINCIPAL_SPACE}, hashtext(owner::text));
      {delete_due(ASSESSMENTS, "most")}
      GET DIAGNOSTICS assessments = ROW_COUNT;
      {delete_due(ABLATIONS, "most - assessments")}
      GET DIAGNOSTICS ablations = ROW_COUNT;
      EXIT WHEN ablations + assessments > 0;
    EXCEPTION
      WHEN query_canceled OR lock_not_available OR deadlock_detected OR admin_shutdown THEN RAISE;
      WHEN OTHERS THEN ablations := 0; assessments := 0; failed := failed + 1;
    END;
  END LOOP;
  RETURN NEXT;
END
"""

NOW = LABELS.SPACE.format(till="statement_timestamp()")
STATUS = f"""
  SELECT count(*) FILTER (WHERE late.ablation), count(*) FILTER (WHERE NOT late.ablation),
    coalesce(max(extract(epoch FROM late.until - late.admitted_at))::float8, 0)
  FROM (
    SELECT true AS ablation, due.admitted_at, space.until FROM {NOW} CROSS JOIN LATERAL ({due(ABLATIONS)}) due
    UNION ALL
    SELECT false, due.admitted_at, space.until FROM {NOW} CROSS JOIN LATERAL ({due(ASSESSMENTS)}) due) late
"""


def expire(body, previous=None):
    return DefineFunction(
        "feedback_ablations_expire",
        "batch int, cutoff timestamptz",
        "TABLE (ablations bigint, assessments bigint, failed bigint)",
        body,
        language="plpgsql",
        execute=("memory_maintenance",),
        previous=previous,
    )


def status(body, previous=None):
    return DefineFunction(
        "feedback_ablations_status",
        "",
        "TABLE (expired_ablations bigint, expired_assessments bigint, oldest_overdue_seconds float8)",
        body,
        volatility="STABLE",
        execute=("memory_monitor",),
        previous=previous,
    )


class Migration(migrations.Migration):
    dependencies = [("feedback", "0008_due_by_age_before_holds")]

    operations = [
        expire(EXPIRE, expire(FORMER.EXPIRE).sql()),
        status(STATUS, status(FORMER.STATUS).sql()),
    ]
