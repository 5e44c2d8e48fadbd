"""What keeps a receipt when its trace's time is over."""

import django.db.models.deletion
from django.db import migrations, models

import apps.core.ids


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_superusers_manage_staff"),
        ("retrieval", "0003_row_policies_and_lifetime_of_receipts"),
    ]

    operations = [
        migrations.CreateModel(
            name="ReceiptKeeper",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=apps.core.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        help_text="The record's model, as in `feedback.judgment`.", max_length=32
                    ),
                ),
                ("record_id", models.UUIDField(help_text="No key: the tables of records are others' own.")),
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
                        related_name="keepers",
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
                "db_table": "retrieval_receipt_keeper",
                "abstract": False,
                "indexes": [models.Index(fields=["record_id"], name="retrieval_receipt_keeper_of")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("principal", "id"), name="retrieval_receipt_keeper_owner_key"
                    ),
                    models.UniqueConstraint(
                        fields=("principal", "receipt", "record_id"), name="retrieval_receipt_keeper_once"
                    ),
                ],
            },
        ),
    ]
