"""The default policy of kind gate, and the bounds of how long evidence is kept."""

from django.db import migrations

from apps.core.policies.migration import PublishDefaultPolicy

BOUNDS = "kind <> 'gate' OR (document ->> 'retention_days')::int BETWEEN 30 AND 3650"

DEFAULT = {
    "evaluation": {
        "seed": 42,
        "validation_fraction": 0.3,
        "min_training_queries": 20,
        "min_validation_queries": 20,
        "regularization": 0.01,
        "margin_scale": 5.0,
        "passes_per_step": 4,
        "ndcg_k": 10,
        "bootstrap_samples": 2000,
        "min_ndcg_gain": 0.01,
        "max_pairs_per_request": 10000,
        "max_records": 10000,
    },
    "holdout": {
        "seed": 42,
        "k": 10,
        "min_query_groups": 20,
        "bootstrap_samples": 2000,
        "min_ndcg_gain": 0.01,
        "max_regression_fraction": 0.1,
        "protected_slices": {},
    },
    "annotators": "conflict",
    "four_eyes_in_admin": True,
    "four_eyes_in_api": False,
    "retention_days": 730,
}


class Migration(migrations.Migration):
    dependencies = [
        ("core", "0002_row_policies_and_audit_functions"),
        ("learning", "0002_row_policies_and_owner_keys"),
    ]

    operations = [
        migrations.RunSQL(
            f"ALTER TABLE core_storedpolicy ADD CONSTRAINT learning_gate_policy_bounds CHECK ({BOUNDS})",
            "ALTER TABLE core_storedpolicy DROP CONSTRAINT learning_gate_policy_bounds",
        ),
        PublishDefaultPolicy("gate", DEFAULT),
    ]
