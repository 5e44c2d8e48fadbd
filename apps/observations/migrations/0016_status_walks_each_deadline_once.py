"""How many rows are overdue and since when come out of one walk of each deadline's index, in its order.

Expiry has walked the same index just before and marked in it what it deleted. Without the order the planner may count
by another index that begins with the workspace, where every deleted row is looked up again until the next vacuum.
"""

from django.db import migrations

from apps.core.db.operations import DefineFunction
from apps.core.db.rowpolicy import MONITOR

ONE_WALK_EACH = """
    SELECT r.due AS records, t.due AS texts,
           greatest(0, extract(epoch FROM statement_timestamp() - least(r.oldest, t.oldest)))::float8 AS overdue
    FROM (SELECT count(*) AS due, min(late.at) AS oldest
          FROM (SELECT o.record_expires_at AS at FROM public.observations_observation o
                WHERE o.record_expires_at <= statement_timestamp() ORDER BY o.record_expires_at) late) r,
         (SELECT count(*) AS due, min(late.at) AS oldest
          FROM (SELECT t.text_expires_at AS at FROM public.observations_observation_text t
                WHERE t.text_expires_at <= statement_timestamp() ORDER BY t.text_expires_at) late) t
"""
FOUR_LOOKS = """
    SELECT
      (SELECT count(*) FROM public.observations_observation o
       WHERE o.record_expires_at <= statement_timestamp()) AS records,
      (SELECT count(*) FROM public.observations_observation_text t
       WHERE t.text_expires_at <= statement_timestamp()) AS texts,
      greatest(0, extract(epoch FROM statement_timestamp() - least(
        (SELECT min(o.record_expires_at) FROM public.observations_observation o),
        (SELECT min(t.text_expires_at) FROM public.observations_observation_text t))))::float8 AS overdue
"""


def body(counted: str) -> str:
    """`counted`: the overdue records and texts, and the seconds of the one that is overdue longest."""
    return f"""
  WITH counted AS ({counted.rstrip()}
  ), stood AS (
    SELECT s.last_success_at, s.last_drained_at, coalesce(s.consecutive_failures, 0) AS failures,
           extract(epoch FROM statement_timestamp() - s.last_success_at)::float8 AS age
    FROM (SELECT) one LEFT JOIN public.observations_maintenance_state s ON s.id = 1
  ), told AS (
    SELECT *, array_remove(ARRAY[
      CASE WHEN last_success_at IS NULL THEN 'never_succeeded' END,
      CASE WHEN age >= 1800 THEN 'success_stale' END,
      CASE WHEN age < -60 THEN 'success_in_future' END,
      CASE WHEN records > 0 THEN 'expired_records' END,
      CASE WHEN texts > 0 THEN 'expired_texts' END,
      CASE WHEN failures >= 2 THEN 'failing' END,
      CASE WHEN NOT public.observations_gate_open() THEN 'identity_changed' END], NULL) AS reasons
    FROM counted, stood
  )
  SELECT statement_timestamp(), last_success_at, age, last_drained_at, records, texts, coalesce(overdue, 0),
         failures, cardinality(reasons) > 0, reasons
  FROM told
"""


class Migration(migrations.Migration):
    dependencies = [("observations", "0015_expiry_leaves_texts_to_their_records")]

    operations = [
        DefineFunction(
            "observations_status",
            "",
            "TABLE (checked_at timestamptz, last_success_at timestamptz, seconds_since_success float8, "
            "last_drained_at timestamptz, expired_records bigint, expired_texts bigint, "
            "oldest_overdue_seconds float8, consecutive_failures int, alarm boolean, alarm_reasons text[])",
            body(ONE_WALK_EACH),
            volatility="STABLE",
            execute=(MONITOR,),
            previous=body(FOUR_LOOKS),
        ),
    ]
