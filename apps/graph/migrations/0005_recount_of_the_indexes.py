"""The nightly recount of an owner's indexes against the rows they are made of, and how far vectors have come."""

from django.db import migrations

from apps.core.db.operations import DefineFunction
from apps.core.db.rowpolicy import granted

SEES_ROWS = granted("view_traces", "curate")
# Counts alone: the rows of a corpus are read by their owner, never by staff.
PROGRESS = f"""
  SELECT coalesce(sum(c.nodes), 0)::bigint, coalesce(sum(c.vectors), 0)::bigint,
    (SELECT count(*) FROM public.graph_vector v JOIN public.graph_embedder e ON e.id = v.embedder_id
     WHERE v.principal_id = owner AND e.state = 'active' AND v.state = 'empty'),
    (SELECT count(*) FROM public.graph_vector v JOIN public.graph_embedder e ON e.id = v.embedder_id
     WHERE v.principal_id = owner AND e.state = 'active' AND v.state = 'failed')
  FROM public.graph_corpus c
  WHERE c.principal_id = owner AND c.kind IN (1, 3)
    AND EXISTS (SELECT FROM public.accounts_principal WHERE id = owner AND {SEES_ROWS})
  HAVING count(*) > 0
"""

OWNERS = "SELECT DISTINCT c.principal_id FROM public.graph_corpus c"

# The lock is the writers' own, so that nothing is counted while it changes. Postings go first, then what is
# counted from them.
RECOUNT = """
#variable_conflict use_column
DECLARE
  orphans integer; terms integer; corpora integer;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('graph/' || owner::text, 0));
  WITH gone AS (
    DELETE FROM public.graph_posting p WHERE p.principal_id = owner AND NOT EXISTS (
      SELECT FROM public.graph_node n WHERE n.principal_id = owner AND n.node_no = p.node_no
        AND n.archived_at IS NULL AND n.superseded_at IS NULL)
    RETURNING 1)
  SELECT count(*) INTO orphans FROM gone;

  WITH counted AS MATERIALIZED (
    SELECT p.term_no, count(*)::int AS df FROM public.graph_posting p WHERE p.principal_id = owner GROUP BY 1
  ), wrong AS MATERIALIZED (
    SELECT t.term_no, coalesce(c.df, 0) AS df FROM public.graph_term t LEFT JOIN counted c USING (term_no)
    WHERE t.principal_id = owner AND t.df <> coalesce(c.df, 0)
  ), mended AS (
    UPDATE public.graph_term t SET df = w.df FROM wrong w
    WHERE t.principal_id = owner AND t.term_no = w.term_no RETURNING 1)
  SELECT count(*) INTO terms FROM mended;
  DELETE FROM public.graph_term t WHERE t.principal_id = owner AND t.df <= 0;

  WITH live AS MATERIALIZED (
    SELECT n.id, n.node_no, n.language,
           CASE n.kind WHEN 'episodic' THEN 1 WHEN 'structural' THEN 2 ELSE 3 END AS kind
    FROM public.graph_node n
    WHERE n.principal_id = owner AND n.archived_at IS NULL AND n.superseded_at IS NULL
  ), lengths AS (
    SELECT l.kind, sum(each_node.len) AS total_len FROM live l JOIN (
      SELECT DISTINCT p.node_no, p.len FROM public.graph_posting p WHERE p.principal_id = owner) each_node
      USING (node_no) GROUP BY 1
  ), embedded AS (
    SELECT l.kind, count(*) AS vectors FROM live l
    JOIN public.graph_vector v ON v.principal_id = owner AND v.node_id = l.id AND v.state = 'ready'
    JOIN public.graph_embedder e ON e.id = v.embedder_id AND e.state = 'active' GROUP BY 1
  ), spoken AS (
    SELECT kind, jsonb_object_agg(language, number) AS languages FROM (
      SELECT kind, language, count(*) AS number FROM live WHERE language IS NOT NULL GROUP BY 1, 2) each_language
    GROUP BY 1
  ), counted AS (
    SELECT kind, coalesce(n.nodes, 0) AS nodes, coalesce(l.total_len, 0) AS total_len,
           coalesce(e.vectors, 0) AS vectors, coalesce(s.languages, '{}') AS languages
    FROM (SELECT kind FROM live UNION
          SELECT c.kind FROM public.graph_corpus c WHERE c.principal_id = owner) kinds
    LEFT JOIN (SELECT kind, count(*) AS nodes FROM live GROUP BY 1) n USING (kind)
    LEFT JOIN lengths l USING (kind) LEFT JOIN embedded e USING (kind) LEFT JOIN spoken s USING (kind)
  ), mended AS (
    INSERT INTO public.graph_corpus AS c (principal_id, kind, nodes, total_len, vectors, languages)
    SELECT owner, kind, nodes, total_len, vectors, languages FROM counted
    ON CONFLICT (principal_id, kind) DO UPDATE SET nodes = excluded.nodes, total_len = excluded.total_len,
      vectors = excluded.vectors, languages = excluded.languages, revision = c.revision + 1
    WHERE (c.nodes, c.total_len, c.vectors, c.languages)
      IS DISTINCT FROM (excluded.nodes, excluded.total_len, excluded.vectors, excluded.languages)
    RETURNING 1)
  SELECT count(*) INTO corpora FROM mended;
  RETURN orphans + terms + corpora;
END"""


class Migration(migrations.Migration):
    dependencies = [("graph", "0004_owners_to_embed")]

    operations = [
        DefineFunction(
            "graph_corpus_progress",
            "owner uuid",
            "TABLE (live bigint, ready bigint, without_substance bigint, failed bigint)",
            PROGRESS,
            volatility="STABLE",
            execute=("memory_staff",),
        ),
        DefineFunction(
            "graph_owners", "", "SETOF uuid", OWNERS, volatility="STABLE", execute=("memory_maintenance",)
        ),
        DefineFunction(
            "graph_recount",
            "owner uuid",
            "integer",
            RECOUNT,
            language="plpgsql",
            execute=("memory_maintenance",),
        ),
    ]
