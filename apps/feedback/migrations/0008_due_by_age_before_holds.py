"""Judgments and citations that are due are found by their age, before a hold is asked for each of them.

The condition on holds names columns of the row alone, so the planner asked it of every row, due or not.
"""

from importlib import import_module

from django.db import migrations

from apps.core.db.operations import DefineFunction

FORMER = import_module("apps.feedback.migrations.0005_lifetime_of_judgments_and_citations")
PRINCIPAL_SPACE = FORMER.TRACES.PRINCIPAL_SPACE


def due(table, space="space.id", until="space.until", more=""):
    """Rows of the table in that workspace, as old as that and oldest first, that no hold covers.

    OFFSET 0 keeps the age before the holds.
    """
    return f"""
      SELECT aged.id, aged.principal_id, aged.admitted_at FROM (
        SELECT old.id, old.principal_id, old.receipt_id, old.admitted_at FROM public.{table} old
        WHERE old.workspace_id = {space} AND old.admitted_at <= {until}{more}
        ORDER BY old.admitted_at OFFSET 0) aged
      WHERE NOT public.operations_held(ARRAY['traces.principal', 'traces.trace'], ARRAY[aged.principal_id,
        (SELECT r.trace_id FROM public.retrieval_receipt r
         WHERE r.principal_id = aged.principal_id AND r.id = aged.receipt_id)])
    """


def any_due(table):
    return f"(SELECT due.principal_id FROM ({due(table, more=' AND old.principal_id <> ALL (passed)')}) due LIMIT 1)"


def delete_due(table):
    own = due(table, "own_space", "until", " AND old.principal_id = owner")
    return f"DELETE FROM public.{table} gone WHERE gone.id IN (SELECT due.id FROM ({own}) due LIMIT most);"


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
  PERFORM public.operations_hold_lock({FORMER.HOLD_KINDS});
  LOOP
    SELECT found.principal_id, space.id, space.until INTO owner, own_space, until
    FROM {FORMER.SPACE.format(till=FORMER.TILL)} CROSS JOIN LATERAL (
      {any_due("feedback_judgment")} UNION ALL {any_due("feedback_citation")}) found LIMIT 1;
    EXIT WHEN owner IS NULL;
    passed := passed || owner;
    BEGIN
      PERFORM pg_advisory_xact_lock({PRINCIPAL_SPACE}, hashtext(owner::text));
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

NOW = FORMER.SPACE.format(till="statement_timestamp()")
STATUS = f"""
  SELECT count(*) FILTER (WHERE late.judgment), count(*) FILTER (WHERE NOT late.judgment),
    coalesce(max(extract(epoch FROM late.until - late.admitted_at))::float8, 0)
  FROM (
    SELECT true AS judgment, due.admitted_at, space.until
    FROM {NOW} CROSS JOIN LATERAL ({due("feedback_judgment")}) due
    UNION ALL
    SELECT false, due.admitted_at, space.until
    FROM {NOW} CROSS JOIN LATERAL ({due("feedback_citation")}) due) late
"""


def expire(body, previous=None):
    return DefineFunction(
        "feedback_labels_expire",
        "batch int, cutoff timestamptz",
        "TABLE (judgments bigint, citations bigint, failed bigint)",
        body,
        language="plpgsql",
        execute=("memory_maintenance",),
        previous=previous,
    )


def status(body, previous=None):
    return DefineFunction(
        "feedback_labels_status",
        "",
        "TABLE (expired_judgments bigint, expired_citations bigint, oldest_overdue_seconds float8)",
        body,
        volatility="STABLE",
        execute=("memory_monitor",),
        previous=previous,
    )


class Migration(migrations.Migration):
    dependencies = [("feedback", "0007_lifetime_of_ablations")]

    operations = [
        expire(EXPIRE, expire(FORMER.EXPIRE).sql()),
        status(STATUS, status(FORMER.STATUS).sql()),
    ]
