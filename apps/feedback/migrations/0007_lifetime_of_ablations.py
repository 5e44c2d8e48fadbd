"""Ablations are their owner's, go with their receipt or by age, and keep the receipt until then."""

from importlib import import_module

from django.db import migrations

from apps.core.db.operations import AddOwnerForeignKey, AddTrigger, ApplyRowPolicy, DefineFunction
from apps.core.db.rowpolicy import OwnerPolicy

TRACES = import_module("apps.traces.migrations.0003_functions_of_retention")
LABELS = import_module("apps.feedback.migrations.0005_lifetime_of_judgments_and_citations")

# A row whose workspace's term has passed and that no hold covers.
DUE_ASSESSMENT = """
    WHERE space.id = due.workspace_id AND due.admitted_at <= space.until
      AND NOT public.operations_held(ARRAY['traces.principal', 'traces.trace'], ARRAY[due.principal_id,
        (SELECT r.trace_id FROM public.feedback_ablation a JOIN public.retrieval_receipt r
           ON r.principal_id = a.principal_id AND r.id = a.receipt_id
         WHERE a.principal_id = due.principal_id AND a.id = due.ablation_id)])
"""
# An ablation stays as long as the youngest of its assessments.
DUE_ABLATION = """
    WHERE space.id = due.workspace_id AND due.admitted_at <= space.until
      AND NOT public.operations_held(ARRAY['traces.principal', 'traces.trace'], ARRAY[due.principal_id,
        (SELECT r.trace_id FROM public.retrieval_receipt r
         WHERE r.principal_id = due.principal_id AND r.id = due.receipt_id)])
      AND NOT EXISTS (SELECT FROM public.feedback_assessment s
        WHERE s.principal_id = due.principal_id AND s.ablation_id = due.id)
"""

# One principal a call, under its lock; one that fails is passed over and keeps nobody else's rows.
EXPIRE = f"""
DECLARE
  most int := greatest(1, least(batch, 5000));
  owner uuid;
  passed uuid[] := '{{}}';
BEGIN
  ablations := 0; assessments := 0; failed := 0;
  PERFORM public.operations_hold_lock({TRACES.HOLD_KINDS});
  LOOP
    SELECT found.principal_id INTO owner FROM {LABELS.SPACE.format(till=LABELS.TILL)}
    CROSS JOIN LATERAL (
      (SELECT due.principal_id FROM public.feedback_assessment due {DUE_ASSESSMENT}
       AND due.principal_id <> ALL (passed) ORDER BY due.admitted_at LIMIT 1)
      UNION ALL
      (SELECT due.principal_id FROM public.feedback_ablation due {DUE_ABLATION}
       AND due.principal_id <> ALL (passed) ORDER BY due.admitted_at LIMIT 1)) found LIMIT 1;
    EXIT WHEN owner IS NULL;
    passed := passed || owner;
    BEGIN
      PERFORM pg_advisory_xact_lock({TRACES.PRINCIPAL_SPACE}, hashtext(owner::text));
      DELETE FROM public.feedback_assessment s WHERE s.id IN (
        SELECT due.id FROM {LABELS.SPACE.format(till=LABELS.TILL)}, public.feedback_assessment due
        {DUE_ASSESSMENT} AND due.principal_id = owner ORDER BY due.admitted_at, due.id LIMIT most);
      GET DIAGNOSTICS assessments = ROW_COUNT;
      DELETE FROM public.feedback_ablation a WHERE a.id IN (
        SELECT due.id FROM {LABELS.SPACE.format(till=LABELS.TILL)}, public.feedback_ablation due
        {DUE_ABLATION} AND due.principal_id = owner ORDER BY due.admitted_at, due.id
        LIMIT most - assessments);
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

STATUS = f"""
  SELECT count(*) FILTER (WHERE late.ablation), count(*) FILTER (WHERE NOT late.ablation),
    coalesce(max(extract(epoch FROM late.until - late.admitted_at))::float8, 0)
  FROM (
    SELECT true AS ablation, due.admitted_at, space.until
    FROM {LABELS.SPACE.format(till="statement_timestamp()")}, public.feedback_ablation due {DUE_ABLATION}
    UNION ALL
    SELECT false, due.admitted_at, space.until
    FROM {LABELS.SPACE.format(till="statement_timestamp()")}, public.feedback_assessment due
    {DUE_ASSESSMENT}) late
"""

ABLATION, ASSESSMENT = ("feedback", "Ablation"), ("feedback", "PresenceAssessment")
POLICY = OwnerPolicy(staff="view_traces", append_only=True)


class Migration(migrations.Migration):
    dependencies = [("feedback", "0006_context_ablations")]

    operations = [
        *(ApplyRowPolicy(*model, POLICY) for model in (ABLATION, ASSESSMENT)),
        AddOwnerForeignKey(*ABLATION, "receipt", "retrieval.Receipt"),
        AddOwnerForeignKey(*ASSESSMENT, "ablation", "feedback.Ablation"),
        AddTrigger(
            *ABLATION,
            "feedback_records_gone",
            "AFTER DELETE",
            "feedback_records_gone",
            each="STATEMENT",
            referencing="OLD TABLE AS old_rows",
        ),
        DefineFunction(
            "feedback_ablations_expire",
            "batch int, cutoff timestamptz",
            "TABLE (ablations bigint, assessments bigint, failed bigint)",
            EXPIRE,
            language="plpgsql",
            execute=("memory_maintenance",),
        ),
        DefineFunction(
            "feedback_ablations_status",
            "",
            "TABLE (expired_ablations bigint, expired_assessments bigint, oldest_overdue_seconds float8)",
            STATUS,
            volatility="STABLE",
            execute=("memory_monitor",),
        ),
    ]
