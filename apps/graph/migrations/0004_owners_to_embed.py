"""Which owners wait for vectors; the only thing that the backfill asks across owners."""

from django.db import migrations

from apps.core.db.operations import DefineFunction

# Counters first for the active space: an owner whose rows all have vectors costs one index entry.
WAITING = """
  SELECT c.principal_id FROM public.graph_corpus c
  WHERE c.kind IN (1, 3) AND c.nodes > 0
    AND (c.nodes > c.vectors OR NOT EXISTS (
      SELECT FROM public.graph_embedder e WHERE e.id = space AND e.state = 'active'))
    AND EXISTS (
      SELECT FROM public.graph_node n LEFT JOIN public.graph_vector v
        ON v.principal_id = n.principal_id AND v.embedder_id = space AND v.node_id = n.id
      WHERE n.principal_id = c.principal_id AND n.kind <> 'structural'
        AND n.archived_at IS NULL AND n.superseded_at IS NULL
        AND (v.node_id IS NULL OR v.state = 'failed' AND v.tries <= 5 AND v.next_try_at <= due))
  GROUP BY c.principal_id ORDER BY c.principal_id LIMIT most
"""


class Migration(migrations.Migration):
    dependencies = [("graph", "0003_shipped_embedders")]

    operations = [
        DefineFunction(
            "graph_owners_to_embed",
            "space integer, due timestamptz, most integer",
            "SETOF uuid",
            WAITING,
            volatility="STABLE",
            execute=("memory_maintenance",),
        ),
    ]
