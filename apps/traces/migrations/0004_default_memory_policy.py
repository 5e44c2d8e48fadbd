"""The default policy of kind memory, and the bounds on which promises rest."""

from django.db import migrations

from apps.core.policies.migration import PublishDefaultPolicy

BOUNDS = """
  kind <> 'memory' OR (
    (document ->> 'half_life_s')::float8 BETWEEN 1 AND 315360000
    AND (document -> 'caps' ->> 'retrieved')::float8 BETWEEN 0 AND 10
    AND (document -> 'caps' ->> 'usage')::float8 BETWEEN 0 AND 10
    AND (document ->> 'edge_delta')::float8 BETWEEN 0 AND 0.25
    AND (document ->> 'edge_cap')::float8 BETWEEN 0 AND 5
    AND (document -> 'retention_days' ->> 'trace')::int BETWEEN 1 AND 3650
    AND (document -> 'retention_days' ->> 'trace_text')::int
      BETWEEN 1 AND (document -> 'retention_days' ->> 'trace')::int
    AND (document -> 'retention_days' ->> 'activation')::int BETWEEN 1 AND 3650)
"""

DEFAULT = {
    "half_life_s": 3600.0,
    "increments": {"retrieved": 0.1, "selected": 0.2, "validated": 0.5, "used": 1.0},
    "caps": {"retrieved": 10.0, "usage": 10.0},
    "edge_delta": 0.25,
    "edge_cap": 5.0,
    "retention_days": {"trace": 90, "trace_text": 30, "activation": 30},
}


class Migration(migrations.Migration):
    dependencies = [("traces", "0003_functions_of_retention")]

    operations = [
        migrations.RunSQL(
            f"ALTER TABLE core_storedpolicy ADD CONSTRAINT traces_memory_policy_bounds CHECK ({BOUNDS})",
            "ALTER TABLE core_storedpolicy DROP CONSTRAINT traces_memory_policy_bounds",
        ),
        PublishDefaultPolicy("memory", DEFAULT),
    ]
