"""Judgments of what receipts returned, and what answers cited."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
from django.db import migrations, models

import apps.core.ids


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_superusers_manage_staff"),
        ("feedback", "0003_functions_of_the_ledger"),
        ("retrieval", "0004_keepers_of_receipts"),
    ]

    operations = [
        migrations.CreateModel(
            name="CitationSet",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=apps.core.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "citation_id",
                    models.UUIDField(help_text="The caller's; unique among all keys of the principal."),
                ),
                ("receipt_checksum", models.CharField(db_collation="C", max_length=64)),
                ("context_sha256", models.CharField(db_collation="C", max_length=64)),
                ("answer_id", models.CharField(max_length=512)),
                ("answer_sha256", models.CharField(db_collation="C", max_length=64, null=True)),
                (
                    "method",
                    models.CharField(
                        choices=[
                            ("model_reported", "Model Reported"),
                            ("application_verified", "Application Verified"),
                            ("human_verified", "Human Verified"),
                        ],
                        max_length=24,
                    ),
                ),
                (
                    "node_ids",
                    django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), size=None),
                ),
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
                        related_name="citations",
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
                "db_table": "feedback_citation",
                "abstract": False,
                "indexes": [
                    models.Index(
                        fields=["principal", "receipt", "admitted_at"], name="feedback_citation_receipt"
                    ),
                    models.Index(fields=["workspace", "admitted_at"], name="feedback_citation_age"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("principal", "id"), name="feedback_citation_owner_key"),
                    models.UniqueConstraint(
                        fields=("principal", "citation_id"), name="feedback_citation_citation"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("method__in", ["model_reported", "application_verified", "human_verified"])
                        ),
                        name="feedback_citation_method",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("context_sha256__regex", "^[0-9a-f]{64}$"),
                            models.Q(
                                ("answer_sha256__isnull", True),
                                ("answer_sha256__regex", "^[0-9a-f]{64}$"),
                                _connector="OR",
                            ),
                        ),
                        name="feedback_citation_hashes",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("node_ids__len__lte", 1000)), name="feedback_citation_nodes"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Judgment",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=apps.core.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "feedback_id",
                    models.UUIDField(help_text="The caller's; unique among all keys of the principal."),
                ),
                ("receipt_checksum", models.CharField(db_collation="C", max_length=64)),
                (
                    "kind",
                    models.CharField(
                        choices=[("labels", "Labels"), ("withdrawal", "Withdrawal")], max_length=12
                    ),
                ),
                (
                    "surface",
                    models.CharField(choices=[("results", "Results"), ("context", "Context")], max_length=8),
                ),
                (
                    "method",
                    models.CharField(
                        choices=[
                            ("explicit_user", "Explicit User"),
                            ("structured_evaluation", "Structured Evaluation"),
                        ],
                        max_length=24,
                    ),
                ),
                ("annotator", models.CharField(max_length=150)),
                (
                    "corrects",
                    models.UUIDField(
                        help_text="Feedback id of what is superseded or withdrawn. No key: that may be gone.",
                        null=True,
                    ),
                ),
                (
                    "node_ids",
                    django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), size=None),
                ),
                (
                    "positions",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.SmallIntegerField(), size=None
                    ),
                ),
                (
                    "relevant",
                    django.contrib.postgres.fields.ArrayField(base_field=models.BooleanField(), size=None),
                ),
                (
                    "grades",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.SmallIntegerField(), size=None
                    ),
                ),
                ("reason", models.TextField(null=True)),
                (
                    "admitted_at",
                    models.DateTimeField(
                        help_text="The server's; later than every record of the receipt before."
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
                    "receipt",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="judgments",
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
                "indexes": [
                    models.Index(
                        models.F("principal"),
                        models.OrderBy(models.F("admitted_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        name="feedback_judgment_history",
                    ),
                    models.Index(
                        fields=["principal", "receipt", "admitted_at"], name="feedback_judgment_receipt"
                    ),
                    models.Index(fields=["workspace", "admitted_at"], name="feedback_judgment_age"),
                    django.contrib.postgres.indexes.GinIndex(
                        fields=["node_ids"], name="feedback_judgment_nodes"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("principal", "id"), name="feedback_judgment_owner_key"),
                    models.UniqueConstraint(
                        fields=("principal", "feedback_id"), name="feedback_judgment_feedback"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("method__in", ["explicit_user", "structured_evaluation"]),
                            ("surface__in", ["results", "context"]),
                            models.Q(("annotator", ""), _negated=True),
                        ),
                        name="feedback_judgment_choices",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("node_ids__len__gte", 1),
                            ("node_ids__len__lte", 50),
                            ("positions__len", models.F("node_ids__len")),
                        ),
                        name="feedback_judgment_entries",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("grades__len", models.F("node_ids__len")),
                                ("kind", "labels"),
                                ("relevant__len", models.F("node_ids__len")),
                            ),
                            models.Q(
                                ("corrects__isnull", False),
                                ("grades__len", 0),
                                ("kind", "withdrawal"),
                                ("relevant__len", 0),
                            ),
                            _connector="OR",
                        ),
                        name="feedback_judgment_kind",
                    ),
                ],
            },
        ),
    ]
