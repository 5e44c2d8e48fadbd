"""The default policy of kind collection: off. And the bounds on which promises rest."""

from django.db import migrations

from apps.core.policies.migration import PublishDefaultPolicy

BOUNDS = """
  kind <> 'collection' OR (
    document ->> 'mode' IN ('off', 'hash', 'platform-text')
    AND (document -> 'text_days' = 'null'::jsonb OR (document ->> 'text_days')::int BETWEEN 1 AND 90)
    AND (document ->> 'record_hours')::int BETWEEN 24 AND 2160
    AND jsonb_typeof(document -> 'collect_private') = 'boolean')
"""

DEFAULT = {"mode": "off", "text_days": None, "record_hours": 2160, "collect_private": False}


class Migration(migrations.Migration):
    dependencies = [("observations", "0004_functions_of_erasure")]

    operations = [
        migrations.RunSQL(
            f"ALTER TABLE core_storedpolicy ADD CONSTRAINT observations_collection_policy_bounds CHECK ({BOUNDS})",
            "ALTER TABLE core_storedpolicy DROP CONSTRAINT observations_collection_policy_bounds",
        ),
        PublishDefaultPolicy("collection", DEFAULT),
    ]
