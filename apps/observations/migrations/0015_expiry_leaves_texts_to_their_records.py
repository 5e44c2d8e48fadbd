"""A batch of expiry is as large as it was asked to be.

Texts of due records go with these, in the batch that takes the records. Deleted ahead of them they cost a batch as much
again and saved nothing. A tenth is texts' all the same: a backlog of records that outlasts many runs must not keep
texts whose records live.
"""

from django.db import migrations

from apps.core.db.operations import DefineFunction
from apps.core.db.rowpolicy import MAINTENANCE


def body(texts: str) -> str:
    """`texts`: how many due texts go beside the records of a batch."""
    return f"""
DECLARE
  till timestamptz := least(cutoff, statement_timestamp());
  most int := greatest(1, least(batch, 5000));
BEGIN
  WITH due AS (
    SELECT o.id FROM public.observations_observation o WHERE o.record_expires_at <= till
    ORDER BY o.record_expires_at LIMIT most FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM public.observations_observation o USING due WHERE o.id = due.id RETURNING 1
  ) SELECT count(*) INTO records FROM gone;
  WITH due AS (
    SELECT t.observation_id FROM public.observations_observation_text t WHERE t.text_expires_at <= till
    ORDER BY t.text_expires_at LIMIT {texts} FOR UPDATE SKIP LOCKED
  ), gone AS (
    DELETE FROM public.observations_observation_text t USING due WHERE t.observation_id = due.observation_id
    RETURNING 1
  ) SELECT count(*) INTO texts FROM gone;
  INSERT INTO public.observations_maintenance_state AS state
    (id, last_success_at, last_drained_at, processed_count, last_failure_code, consecutive_failures)
  VALUES (1, clock_timestamp(), CASE WHEN records + texts = 0 THEN clock_timestamp() END, records + texts, '', 0)
  ON CONFLICT (id) DO UPDATE SET
    last_success_at = excluded.last_success_at,
    last_drained_at = coalesce(excluded.last_drained_at, state.last_drained_at),
    processed_count = state.processed_count + excluded.processed_count,
    consecutive_failures = CASE WHEN records + texts = 0 THEN 0 ELSE state.consecutive_failures END;
  RETURN NEXT;
END
"""


class Migration(migrations.Migration):
    dependencies = [("observations", "0014_unsafe_runs_stop_by_themselves")]

    operations = [
        DefineFunction(
            "observations_expire",
            "batch int, cutoff timestamptz",
            "TABLE (records bigint, texts bigint)",
            body("greatest(most - records, (most + 9) / 10)"),
            language="plpgsql",
            execute=(MAINTENANCE,),
            previous=body("most"),
        ),
    ]
