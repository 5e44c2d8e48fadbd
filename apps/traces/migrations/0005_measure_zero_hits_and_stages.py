"""Zero hits of the last minutes, and how far the traces of an hour ago have come by now, for the start page."""

from importlib import import_module

from django.db import migrations

from apps.core.db.operations import DefineFunction

FORMER = import_module("apps.traces.migrations.0003_functions_of_retention").MEASURE

# Uses come minutes after the search: a trace is given an hour before its stage is counted.
MEASURE = f"""
  {FORMER}
  UNION ALL
  SELECT w.id, 'traces_zero_hit', '', count(*)::float8
  FROM public.accounts_workspace w
  JOIN public.traces_trace t ON t.workspace_id = w.id AND t.recorded_at > since AND t.source_count = 0
  GROUP BY w.id
  UNION ALL
  SELECT w.id, 'traces_stage', (ARRAY['retrieved', 'selected', 'validated', 'used'])[1 + reached.stage],
    count(*)::float8
  FROM public.accounts_workspace w
  JOIN public.traces_trace t ON t.workspace_id = w.id AND t.source_count > 0
    AND t.recorded_at > since - interval '1 hour'
    AND t.recorded_at <= statement_timestamp() - interval '1 hour'
  CROSS JOIN LATERAL (
    SELECT coalesce(max(u.stage), 0) AS stage FROM public.traces_use u
    WHERE u.principal_id = t.principal_id AND u.trace_id = t.id) reached
  GROUP BY w.id, reached.stage
"""


def define(body: str, previous: str | None = None) -> DefineFunction:
    return DefineFunction(
        "traces_measure",
        "since timestamptz",
        "TABLE (workspace_id uuid, name text, label text, value float8)",
        body,
        volatility="STABLE",
        execute=("memory_monitor",),
        previous=previous,
    )


class Migration(migrations.Migration):
    dependencies = [("traces", "0004_default_memory_policy")]

    operations = [define(MEASURE, define(FORMER).sql())]
