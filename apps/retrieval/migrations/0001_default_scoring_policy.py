"""The default policy of kind scoring, as `benchmarks/quality.py` chose it."""

from django.db import migrations

from apps.core.policies.migration import PublishDefaultPolicy

DEFAULT = {
    "formula": "weighted",
    "weights": {
        "semantic": 0.36,
        "lexical": 0.36,
        "graph": 0.08,
        "recency": 0.06,
        "salience": 0.07,
        "confidence": 0.07,
    },
    "fusion_k": 60,
    "candidates_per_channel": 100,
    "recency_per_day": 0.02,
    "epistemic": {
        "observed": 1.0,
        "asserted": 0.9,
        "inferred": 0.7,
        "conditional": 0.5,
        "unverified": 0.5,
        "hypothetical": 0.3,
        "deprecated": 0.1,
    },
    "kinds": {"episodic": 1.0, "structural": 1.0, "passage": 1.0},
    "relevance_floor": 0.0,
    "session": {"enabled": True, "top": 20, "distance": 2, "decay": 0.8},
}


class Migration(migrations.Migration):
    initial = True
    dependencies = [("core", "0002_row_policies_and_audit_functions")]

    operations = [PublishDefaultPolicy("scoring", DEFAULT)]
