"""What is learned is its owner's; results are append-only; references cannot cross owners."""

from django.db import migrations

from apps.core.db.operations import AddOwnerForeignKey, ApplyRowPolicy
from apps.core.db.rowpolicy import OwnerPolicy

CHANGING = ("Evaluation", "Holdout")
APPENDED = ("EvaluationResult", "EvaluatedQuery", "QuerySet", "JudgedQuery", "HoldoutResult", "HoldoutPair")


class Migration(migrations.Migration):
    dependencies = [
        ("learning", "0001_evaluations_query_sets_and_holdouts"),
        ("retrieval", "0005_receipts_outlive_traces"),
    ]

    operations = [
        *(ApplyRowPolicy("learning", model, OwnerPolicy(staff="view_traces")) for model in CHANGING),
        *(
            ApplyRowPolicy("learning", model, OwnerPolicy(staff="view_traces", append_only=True))
            for model in APPENDED
        ),
        AddOwnerForeignKey("learning", "EvaluationResult", "evaluation", "learning.Evaluation", "CASCADE"),
        AddOwnerForeignKey("learning", "EvaluatedQuery", "evaluation", "learning.Evaluation", "CASCADE"),
        AddOwnerForeignKey("learning", "JudgedQuery", "query_set", "learning.QuerySet", "CASCADE"),
        # What a holdout stands on stays as long as it does.
        AddOwnerForeignKey("learning", "Holdout", "evaluation", "learning.Evaluation", "NO ACTION"),
        AddOwnerForeignKey("learning", "Holdout", "query_set", "learning.QuerySet", "NO ACTION"),
        AddOwnerForeignKey("learning", "HoldoutResult", "holdout", "learning.Holdout", "CASCADE"),
        AddOwnerForeignKey("learning", "HoldoutPair", "holdout", "learning.Holdout", "CASCADE"),
        # Erasing a trace takes its receipt at once; a holdout over it says that it no longer reproduces.
        AddOwnerForeignKey("learning", "HoldoutPair", "baseline_receipt", "retrieval.Receipt", "SET NULL"),
        AddOwnerForeignKey("learning", "HoldoutPair", "candidate_receipt", "retrieval.Receipt", "SET NULL"),
    ]
