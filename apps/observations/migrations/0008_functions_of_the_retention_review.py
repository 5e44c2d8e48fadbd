"""What a retention review asks of the journal: since when it keeps, what it holds, and shorter lives of old texts."""

from django.db import migrations

from apps.core.db.operations import DefineFunction
from apps.core.db.rowpolicy import MAINTENANCE, STAFF

STARTS = """
  SELECT s.workspace_id, min(s.effective_from) FROM public.core_storedpolicy s
  WHERE s.kind = 'collection' AND s.workspace_id IS NOT NULL AND s.effective_from <= statement_timestamp()
    AND s.document ->> 'mode' IN ('hash', 'platform-text')
  GROUP BY s.workspace_id
"""

# Texts alone: their records may live on. Deadlines only ever move earlier.
SHORTEN_TEXTS = """
DECLARE
  texts bigint;
BEGIN
  IF hours < 24 OR hours > 2160 THEN
    RAISE EXCEPTION 'hours_out_of_bounds' USING ERRCODE = 'check_violation';
  END IF;
  WITH late AS (
    SELECT t.observation_id FROM public.observations_observation_text t
    WHERE t.workspace_id = workspace AND t.text_expires_at > t.observed_at + make_interval(hours => hours)
    ORDER BY t.observed_at LIMIT greatest(1, least(batch, 5000)) FOR UPDATE SKIP LOCKED
  ), moved AS (
    UPDATE public.observations_observation_text t
    SET text_expires_at = t.observed_at + make_interval(hours => hours)
    FROM late WHERE t.observation_id = late.observation_id RETURNING 1
  ) SELECT count(*) INTO texts FROM moved;
  RETURN texts;
END
"""

# What a batch skipped because another transaction held it still counts.
LIVING_LONGER = """
  SELECT
    (SELECT count(*) FROM public.observations_observation o
     WHERE o.workspace_id = workspace AND o.record_expires_at > o.observed_at + make_interval(hours => record_hours))
  + (SELECT count(*) FROM public.observations_observation_text t
     WHERE t.workspace_id = workspace AND t.text_expires_at > t.observed_at + make_interval(hours => text_hours))
"""

# Numbers alone, of live rows. A band without rows was not measured: null, not 0.
COUNTS = """
  WITH allowed AS (
    SELECT workspace = ANY (public.accounts_granted_workspaces(ARRAY['review_retention'])) AS yes
  ), live AS (
    SELECT o.id, o.query_fingerprint, extract(epoch FROM statement_timestamp() - o.observed_at) / 86400 AS days,
           EXISTS (SELECT FROM public.observations_observation_feedback f
                   WHERE f.principal_id = o.principal_id AND f.observation_id = o.id
                     AND f.withdrawn_at IS NULL) AS useful
    FROM public.observations_observation o, allowed
    WHERE allowed.yes AND o.workspace_id = workspace AND o.record_expires_at > statement_timestamp()
  )
  SELECT
    count(*) FILTER (WHERE useful AND days < 8) + CASE WHEN count(*) FILTER (WHERE days < 8) = 0 THEN NULL ELSE 0 END,
    count(*) FILTER (WHERE useful AND days >= 8 AND days < 31)
      + CASE WHEN count(*) FILTER (WHERE days >= 8 AND days < 31) = 0 THEN NULL ELSE 0 END,
    count(*) FILTER (WHERE useful AND days >= 31)
      + CASE WHEN count(*) FILTER (WHERE days >= 31) = 0 THEN NULL ELSE 0 END,
    count(DISTINCT query_fingerprint) FILTER (WHERE days < 7),
    (SELECT count(*) FROM public.observations_erasure e, allowed
     WHERE allowed.yes AND e.workspace_id = workspace AND e.completed_at IS NULL)
  FROM live
"""


class Migration(migrations.Migration):
    dependencies = [("observations", "0007_functions_of_the_restore_gate")]

    operations = [
        DefineFunction(
            "observations_collection_starts",
            "",
            "TABLE (workspace_id uuid, first_enabled_at timestamptz)",
            STARTS,
            volatility="STABLE",
            execute=(MAINTENANCE,),
        ),
        DefineFunction(
            "observations_shorten_texts",
            "workspace uuid, hours int, batch int",
            "bigint",
            SHORTEN_TEXTS,
            language="plpgsql",
            execute=(MAINTENANCE,),
        ),
        DefineFunction(
            "observations_living_longer",
            "workspace uuid, record_hours int, text_hours int",
            "bigint",
            LIVING_LONGER,
            volatility="STABLE",
            execute=(MAINTENANCE,),
        ),
        DefineFunction(
            "observations_review_counts",
            "workspace uuid",
            "TABLE (young bigint, middle bigint, old bigint, distinct_queries bigint, open_erasures bigint)",
            COUNTS,
            volatility="STABLE",
            execute=(STAFF,),
        ),
    ]
