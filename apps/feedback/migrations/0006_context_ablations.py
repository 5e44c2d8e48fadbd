"""What contexts are without some of their entries, and what those entries were worth."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import apps.core.ids


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_superusers_manage_staff"),
        ("feedback", "0005_lifetime_of_judgments_and_citations"),
        ("retrieval", "0005_receipts_outlive_traces"),
    ]

    operations = [
        migrations.CreateModel(
            name="Ablation",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=apps.core.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("receipt_checksum", models.CharField(db_collation="C", max_length=64)),
                ("baseline_sha256", models.CharField(db_collation="C", max_length=64)),
                ("counterfactual_sha256", models.CharField(db_collation="C", max_length=64)),
                (
                    "node_ids",
                    django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), size=None),
                ),
                (
                    "token_costs",
                    django.contrib.postgres.fields.ArrayField(base_field=models.IntegerField(), size=None),
                ),
                ("tokenizer", models.CharField(max_length=128)),
                ("baseline_tokens", models.IntegerField()),
                ("counterfactual_tokens", models.IntegerField()),
                ("admitted_at", models.DateTimeField(help_text="The server's.")),
                (
                    "principal",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="accounts.principal",
                    ),
                ),
                (
                    "receipt",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="ablations",
                        to="retrieval.receipt",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="accounts.workspace",
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="PresenceAssessment",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=apps.core.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("evaluation_id", models.CharField(help_text="The caller's.", max_length=128)),
                ("citation_id", models.UUIDField(help_text="The citation set that cites the entry.")),
                ("baseline_correct", models.BooleanField()),
                ("counterfactual_correct", models.BooleanField()),
                (
                    "tier",
                    models.CharField(
                        choices=[
                            ("load_bearing", "Load Bearing"),
                            ("cited_non_flipping", "Cited Non Flipping"),
                            ("misleading", "Misleading"),
                            ("cited_wrong_noncuring", "Cited Wrong Noncuring"),
                        ],
                        max_length=24,
                    ),
                ),
                ("baseline_answer_sha256", models.CharField(db_collation="C", max_length=64, null=True)),
                (
                    "counterfactual_answer_sha256",
                    models.CharField(db_collation="C", max_length=64, null=True),
                ),
                ("admitted_at", models.DateTimeField(help_text="The server's.")),
                (
                    "ablation",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="assessments",
                        to="feedback.ablation",
                    ),
                ),
                (
                    "principal",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="accounts.principal",
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="accounts.workspace",
                    ),
                ),
            ],
            options={
                "db_table": "feedback_assessment",
                "abstract": False,
            },
        ),
        migrations.AddIndex(
            model_name="ablation",
            index=models.Index(
                fields=["principal", "receipt", "admitted_at"], name="feedback_ablation_receipt"
            ),
        ),
        migrations.AddIndex(
            model_name="ablation",
            index=models.Index(fields=["workspace", "admitted_at"], name="feedback_ablation_age"),
        ),
        migrations.AddConstraint(
            model_name="ablation",
            constraint=models.UniqueConstraint(
                fields=("principal", "id"), name="feedback_ablation_owner_key"
            ),
        ),
        migrations.AddConstraint(
            model_name="ablation",
            constraint=models.UniqueConstraint(
                fields=("principal", "receipt", "node_ids", "tokenizer"), name="feedback_ablation_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="ablation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("baseline_sha256__regex", "^[0-9a-f]{64}$"),
                    ("counterfactual_sha256__regex", "^[0-9a-f]{64}$"),
                ),
                name="feedback_ablation_hashes",
            ),
        ),
        migrations.AddConstraint(
            model_name="ablation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("node_ids__len__gte", 1),
                    ("node_ids__len__lte", 50),
                    ("token_costs__len", models.F("node_ids__len")),
                ),
                name="feedback_ablation_entries",
            ),
        ),
        migrations.AddConstraint(
            model_name="ablation",
            constraint=models.CheckConstraint(
                condition=models.Q(("baseline_tokens__gte", 0), ("counterfactual_tokens__gte", 0)),
                name="feedback_ablation_tokens",
            ),
        ),
        migrations.AddIndex(
            model_name="presenceassessment",
            index=models.Index(fields=["workspace", "admitted_at"], name="feedback_assessment_age"),
        ),
        migrations.AddConstraint(
            model_name="presenceassessment",
            constraint=models.UniqueConstraint(
                fields=("principal", "id"), name="feedback_assessment_owner_key"
            ),
        ),
        migrations.AddConstraint(
            model_name="presenceassessment",
            constraint=models.UniqueConstraint(
                fields=("principal", "ablation", "evaluation_id"), name="feedback_assessment_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="presenceassessment",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("baseline_correct", True),
                        ("counterfactual_correct", False),
                        ("tier", "load_bearing"),
                    ),
                    models.Q(
                        ("baseline_correct", True),
                        ("counterfactual_correct", True),
                        ("tier", "cited_non_flipping"),
                    ),
                    models.Q(
                        ("baseline_correct", False), ("counterfactual_correct", True), ("tier", "misleading")
                    ),
                    models.Q(
                        ("baseline_correct", False),
                        ("counterfactual_correct", False),
                        ("tier", "cited_wrong_noncuring"),
                    ),
                    _connector="OR",
                ),
                name="feedback_assessment_tier",
            ),
        ),
        migrations.AddConstraint(
            model_name="presenceassessment",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("baseline_answer_sha256__isnull", True),
                        ("baseline_answer_sha256__regex", "^[0-9a-f]{64}$"),
                        _connector="OR",
                    ),
                    models.Q(
                        ("counterfactual_answer_sha256__isnull", True),
                        ("counterfactual_answer_sha256__regex", "^[0-9a-f]{64}$"),
                        _connector="OR",
                    ),
                ),
                name="feedback_assessment_hashes",
            ),
        ),
    ]
