"""The receipts of retrievals: one canonical document each, and its numbers as arrays."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import apps.core.ids


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_superusers_manage_staff"),
        ("retrieval", "0001_default_scoring_policy"),
        ("traces", "0004_default_memory_policy"),
    ]

    operations = [
        migrations.CreateModel(
            name="Receipt",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=apps.core.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("recorded_at", models.DateTimeField()),
                ("mode", models.CharField(max_length=8)),
                ("contract", models.CharField(help_text="Scorer contract version.", max_length=32)),
                ("formula", models.CharField(max_length=16)),
                (
                    "policy_id",
                    models.UUIDField(help_text="The stored policy of kind scoring that ruled.", null=True),
                ),
                (
                    "scopes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64),
                        help_text="Null = all.",
                        null=True,
                        size=None,
                    ),
                ),
                ("query_identity", models.CharField(db_collation="C", max_length=64)),
                ("profile_id", models.UUIDField(null=True)),
                ("profile_status", models.CharField(max_length=16)),
                (
                    "document",
                    models.TextField(
                        db_collation="C", help_text="RFC 8785; never changed, not even in white space."
                    ),
                ),
                (
                    "checksum",
                    models.CharField(db_collation="C", help_text="SHA-256 of the document.", max_length=64),
                ),
                (
                    "node_ids",
                    django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), size=None),
                ),
                (
                    "scores",
                    django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), size=None),
                ),
                (
                    "features",
                    django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), size=None),
                ),
                (
                    "raw",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.FloatField(null=True), size=None
                    ),
                ),
                (
                    "channels",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.SmallIntegerField(), size=None
                    ),
                ),
                (
                    "weight_rows",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.SmallIntegerField(), size=None
                    ),
                ),
                (
                    "weights",
                    django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), size=None),
                ),
                (
                    "step_rows",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.SmallIntegerField(), size=None
                    ),
                ),
                (
                    "step_kinds",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=16), size=None
                    ),
                ),
                (
                    "step_values",
                    django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), size=None),
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
                    "trace",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        to="traces.trace",
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
                        models.OrderBy(models.F("recorded_at"), descending=True),
                        models.OrderBy(models.F("id"), descending=True),
                        name="retrieval_receipt_history",
                    ),
                    models.Index(
                        models.F("workspace"),
                        models.F("recorded_at"),
                        models.F("id"),
                        name="retrieval_receipt_sample",
                    ),
                    models.Index(
                        condition=models.Q(("trace__isnull", False)),
                        fields=["principal", "trace"],
                        name="retrieval_receipt_of_trace",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("principal", "id"), name="retrieval_receipt_owner_key"),
                    models.CheckConstraint(
                        condition=models.Q(("mode__in", ["search", "context"])), name="retrieval_receipt_mode"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("checksum__regex", "^[0-9a-f]{64}$")),
                        name="retrieval_receipt_checksum",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("profile_status__in", ["none", "applied", "inapplicable", "request_override"])
                        ),
                        name="retrieval_receipt_profile",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("node_ids__len__lte", 50), ("scores__len__lte", 50)),
                        name="retrieval_receipt_candidates",
                    ),
                ],
            },
        ),
    ]
