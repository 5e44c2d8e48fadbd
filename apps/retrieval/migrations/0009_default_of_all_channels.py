"""The default of kind scoring with the members that came with channels, analyses and rerankers; it scores the same."""

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
    "query_analysis": None,
    "temporal_bonus": 0.0,
    "relevance_floor": 0.0,
    "current_update": 1.0,
    "session": {"enabled": True, "documents": False, "top": 20, "distance": 2, "decay": 0.8},
    "rerank": {"top": 20, "keep": 0.5},
}


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0008_owners_of_receipts")]

    operations = [PublishDefaultPolicy("scoring", DEFAULT, "Names every member; scores stay as they are.")]
