"""What the ledger of credits needs from the database: taking back before traces go, pruning, verification."""

from django.db import migrations

from apps.core.db.operations import DefineFunction

# As a reversal would, at the database's time, edges by ascending key. The caller holds the principal's lock.
RELEASE = """
DECLARE half_life_s float8;
BEGIN
  SELECT public.traces_half_life(p.workspace_id) INTO half_life_s
  FROM public.accounts_principal p WHERE p.id = owner;
  PERFORM FROM public.feedback_edge_strength s
  WHERE s.principal_id = owner AND s.edge_key IN (
    SELECT c.edge_key FROM public.feedback_credit c
    WHERE c.principal_id = owner AND c.trace_id = ANY (wanted) AND c.active)
  ORDER BY s.edge_key FOR UPDATE;
  UPDATE public.feedback_edge_strength s
  SET updated_at = lent.at,
      strength = greatest(0::float8,
        public.traces_decay(s.strength, s.updated_at, lent.at, half_life_s) - lent.removed)
  FROM (
    SELECT c.edge_key, greatest(statement_timestamp(), edge.updated_at) AS at,
      sum(public.traces_decay(c.delta, c.credited_at, greatest(statement_timestamp(), edge.updated_at),
                              half_life_s)) AS removed
    FROM public.feedback_credit c
    JOIN public.feedback_edge_strength edge
      ON edge.principal_id = c.principal_id AND edge.edge_key = c.edge_key
    WHERE c.principal_id = owner AND c.trace_id = ANY (wanted) AND c.active
    GROUP BY c.edge_key, edge.updated_at) lent
  WHERE s.principal_id = owner AND s.edge_key = lent.edge_key;
END
"""

PRUNE = """
  WITH space AS MATERIALIZED (
    SELECT w.id, public.traces_half_life(w.id) AS half_life_s FROM public.accounts_workspace w
  ), due AS (
    SELECT s.id FROM public.feedback_edge_strength s JOIN space ON space.id = s.workspace_id
    WHERE public.traces_decay(s.strength, s.updated_at, statement_timestamp(), space.half_life_s) < 1e-9
      AND s.updated_at <= least(cutoff, statement_timestamp())
      AND NOT EXISTS (SELECT FROM public.feedback_credit c
        WHERE c.principal_id = s.principal_id AND c.edge_key = s.edge_key)
    ORDER BY s.id LIMIT greatest(1, least(batch, 5000)) FOR UPDATE OF s SKIP LOCKED
  ), gone AS (
    DELETE FROM public.feedback_edge_strength s USING due WHERE s.id = due.id RETURNING 1
  ) SELECT count(*) FROM gone
"""

# The next edges of the rotation, in one statement and so in one snapshot; nothing of them is locked or changed.
VERIFY = """
DECLARE place record;
BEGIN
  INSERT INTO public.feedback_ledger_rotation (id, drifted) VALUES (1, false) ON CONFLICT (id) DO NOTHING;
  SELECT r.after, r.drifted INTO place FROM public.feedback_ledger_rotation r WHERE r.id = 1 FOR UPDATE;
  WITH edges AS MATERIALIZED (
    SELECT s.id, s.principal_id, s.workspace_id, s.edge_key, s.strength, s.updated_at
    FROM public.feedback_edge_strength s WHERE place.after IS NULL OR s.id > place.after
    ORDER BY s.id LIMIT greatest(1, least(batch, 20000))
  ), space AS MATERIALIZED (
    SELECT w.workspace_id, public.traces_half_life(w.workspace_id) AS half_life_s
    FROM (SELECT DISTINCT e.workspace_id FROM edges e) w
  ), compared AS (
    SELECT e.id, e.workspace_id, abs(e.strength - coalesce(sum(
        public.traces_decay(c.delta, c.credited_at, e.updated_at, space.half_life_s)), 0)) AS drift
    FROM edges e JOIN space USING (workspace_id)
    LEFT JOIN public.feedback_credit c
      ON c.principal_id = e.principal_id AND c.edge_key = e.edge_key AND c.active
    GROUP BY e.id, e.workspace_id, e.strength
  )
  SELECT count(*), (SELECT last.id FROM edges last ORDER BY last.id DESC LIMIT 1),
    coalesce(max(compared.drift), 0),
    coalesce((SELECT jsonb_object_agg(found.workspace_id, found.edges) FROM (
      SELECT o.workspace_id, count(*) AS edges FROM compared o WHERE o.drift > 1e-9 GROUP BY 1) found), '{}')
  INTO checked, last_id, worst, drifted FROM compared;
  clean_round := checked < batch AND NOT place.drifted AND drifted = '{}';
  UPDATE public.feedback_ledger_rotation r SET
    after = CASE WHEN checked < batch THEN NULL ELSE last_id END,
    drifted = CASE WHEN checked < batch THEN false ELSE place.drifted OR verify.drifted <> '{}' END
  FROM (SELECT feedback_verify_ledger.drifted) verify WHERE r.id = 1;
  RETURN NEXT;
END
"""

HOLDS_CREDIT = """
  SELECT EXISTS (
    SELECT FROM public.traces_policy_followers(workspace) follower
    JOIN public.accounts_principal p ON p.workspace_id = follower
    WHERE EXISTS (SELECT FROM public.feedback_credit c WHERE c.principal_id = p.id))
"""

NOTHING = (
    "CREATE OR REPLACE FUNCTION public.traces_before_delete(owner uuid, wanted uuid[]) RETURNS void "
    "LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS 'SELECT'"
)


class Migration(migrations.Migration):
    dependencies = [
        ("feedback", "0002_row_policies_and_owner_keys"),
        ("traces", "0003_functions_of_retention"),
    ]

    operations = [
        DefineFunction(
            "feedback_release_credits", "owner uuid, wanted uuid[]", "void", RELEASE, language="plpgsql"
        ),
        DefineFunction(
            "traces_before_delete",
            "owner uuid, wanted uuid[]",
            "void",
            "SELECT public.feedback_release_credits(owner, wanted)",
            previous=NOTHING,
        ),
        DefineFunction(
            "feedback_prune_strength",
            "batch int, cutoff timestamptz",
            "bigint",
            PRUNE,
            execute=("memory_maintenance",),
        ),
        DefineFunction(
            "feedback_verify_ledger",
            "batch int",
            "TABLE (checked bigint, last_id uuid, worst float8, drifted jsonb, clean_round boolean)",
            VERIFY,
            language="plpgsql",
            execute=("memory_maintenance",),
        ),
        DefineFunction(
            "feedback_holds_credit",
            "workspace uuid",
            "boolean",
            HOLDS_CREDIT,
            volatility="STABLE",
            execute=("memory_staff",),
        ),
    ]
