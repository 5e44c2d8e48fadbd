"""Evaluations, query sets and holdouts: what was asked, and what came out, apart."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

import apps.core.ids


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0005_superusers_manage_staff"),
        ("retrieval", "0005_receipts_outlive_traces"),
    ]

    operations = [
        migrations.CreateModel(
            name="Evaluation",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=apps.core.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "requested_at",
                    models.DateTimeField(help_text="The start: what was admitted later is not looked at."),
                ),
                (
                    "scopes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64),
                        help_text="Sorted; null = all.",
                        null=True,
                        size=None,
                    ),
                ),
                ("config", models.JSONField()),
                (
                    "gate_policy_id",
                    models.UUIDField(help_text="The stored policy of kind gate that ruled at the start."),
                ),
                (
                    "weaker_settings",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), default=list, size=None
                    ),
                ),
                ("exploratory", models.BooleanField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("phase", models.CharField(blank=True, help_text="What is being done now.", max_length=16)),
                ("done", models.PositiveIntegerField(default=0)),
                ("total", models.PositiveIntegerField(default=0, help_text="0 = not known yet.")),
                (
                    "attempts",
                    models.PositiveSmallIntegerField(default=0, help_text="How often a worker began it."),
                ),
                ("cancel_requested_at", models.DateTimeField(null=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("failure_code", models.CharField(blank=True, max_length=64)),
                ("surface", models.CharField(max_length=7)),
                (
                    "query_groups",
                    models.JSONField(
                        default=dict, help_text="Receipt id → the caller's name of its group of paraphrases."
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
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="EvaluatedQuery",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=apps.core.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("group_id", models.CharField(db_collation="C", max_length=64)),
                ("split", models.CharField(max_length=10)),
                (
                    "receipt_ids",
                    django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), size=None),
                ),
                ("baseline_pairwise_accuracy", models.FloatField()),
                ("candidate_pairwise_accuracy", models.FloatField()),
                ("baseline_judged_ndcg", models.FloatField()),
                ("candidate_judged_ndcg", models.FloatField()),
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
                (
                    "evaluation",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="queries",
                        to="learning.evaluation",
                    ),
                ),
            ],
            options={
                "db_table": "learning_evaluated_query",
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="EvaluationResult",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=apps.core.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("recorded_at", models.DateTimeField()),
                ("decision", models.CharField(max_length=40)),
                ("training_groups", models.PositiveIntegerField()),
                ("validation_groups", models.PositiveIntegerField()),
                ("ndcg_gain", models.FloatField(null=True)),
                ("interval_low", models.FloatField(null=True)),
                ("interval_high", models.FloatField(null=True)),
                ("pairwise_gain", models.FloatField(null=True)),
                ("loss_before", models.FloatField(null=True)),
                ("loss_after", models.FloatField(null=True)),
                (
                    "multipliers",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.FloatField(),
                        help_text="Six, in the order of the features.",
                        size=None,
                    ),
                ),
                ("scorer_contract", models.CharField(max_length=32)),
                ("input_checksum", models.CharField(db_collation="C", max_length=64)),
                ("manifest_sha256", models.CharField(db_collation="C", max_length=64)),
                ("validation_groups_sha256", models.CharField(db_collation="C", max_length=64)),
                (
                    "earlier_evaluations",
                    models.PositiveIntegerField(help_text="Fitted before on the same validation groups."),
                ),
                (
                    "receipt_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(),
                        help_text="Receipts that it stands on; kept as long as it is.",
                        size=None,
                    ),
                ),
                ("report", models.TextField(db_collation="C", help_text="RFC 8785; never changed.")),
                (
                    "checksum",
                    models.CharField(db_collation="C", help_text="SHA-256 of the report.", max_length=64),
                ),
                (
                    "evaluation",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="result",
                        to="learning.evaluation",
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
                "db_table": "learning_evaluation_result",
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Holdout",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=apps.core.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "requested_at",
                    models.DateTimeField(help_text="The start: what was admitted later is not looked at."),
                ),
                (
                    "scopes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64),
                        help_text="Sorted; null = all.",
                        null=True,
                        size=None,
                    ),
                ),
                ("config", models.JSONField()),
                (
                    "gate_policy_id",
                    models.UUIDField(help_text="The stored policy of kind gate that ruled at the start."),
                ),
                (
                    "weaker_settings",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), default=list, size=None
                    ),
                ),
                ("exploratory", models.BooleanField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "Queued"),
                            ("running", "Running"),
                            ("succeeded", "Succeeded"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="queued",
                        max_length=10,
                    ),
                ),
                ("phase", models.CharField(blank=True, help_text="What is being done now.", max_length=16)),
                ("done", models.PositiveIntegerField(default=0)),
                ("total", models.PositiveIntegerField(default=0, help_text="0 = not known yet.")),
                (
                    "attempts",
                    models.PositiveSmallIntegerField(default=0, help_text="How often a worker began it."),
                ),
                ("cancel_requested_at", models.DateTimeField(null=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField(null=True)),
                ("failure_code", models.CharField(blank=True, max_length=64)),
                ("limit", models.PositiveSmallIntegerField(help_text="Rows of each retrieval.")),
                ("trials", models.JSONField(help_text="Imported pairs as they were given.", null=True)),
                (
                    "memory_artifact_sha256",
                    models.CharField(
                        blank=True,
                        help_text="What imported pairs say of the memory that answered.",
                        max_length=64,
                    ),
                ),
                (
                    "baseline_multipliers",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.FloatField(),
                        help_text="Six, in the order of the features.",
                        size=None,
                    ),
                ),
                (
                    "candidate_multipliers",
                    django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), size=None),
                ),
                (
                    "evaluation",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="holdouts",
                        to="learning.evaluation",
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
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="HoldoutPair",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=apps.core.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("position", models.PositiveIntegerField()),
                ("query_name", models.CharField(blank=True, db_collation="C", max_length=512)),
                ("group_id", models.CharField(db_collation="C", max_length=512)),
                (
                    "slices",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=512), default=list, size=None
                    ),
                ),
                ("baseline_request_id", models.CharField(db_collation="C", max_length=512)),
                ("candidate_request_id", models.CharField(db_collation="C", max_length=512)),
                (
                    "baseline_documents",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.SmallIntegerField(),
                        help_text="Of each row the place of its document among the judged ones; -1 for one that nobody judged.",
                        size=None,
                    ),
                ),
                (
                    "candidate_documents",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.SmallIntegerField(), size=None
                    ),
                ),
                ("baseline_recall", models.FloatField()),
                ("candidate_recall", models.FloatField()),
                ("baseline_ndcg", models.FloatField()),
                ("candidate_ndcg", models.FloatField()),
                ("baseline_mrr", models.FloatField()),
                ("candidate_mrr", models.FloatField()),
                (
                    "baseline_receipt",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="retrieval.receipt",
                    ),
                ),
                (
                    "candidate_receipt",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="retrieval.receipt",
                    ),
                ),
                (
                    "holdout",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="pairs",
                        to="learning.holdout",
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
                "db_table": "learning_holdout_pair",
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="HoldoutResult",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=apps.core.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("recorded_at", models.DateTimeField()),
                ("decision", models.CharField(max_length=40)),
                (
                    "failed_gates",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=40), size=None
                    ),
                ),
                ("query_groups", models.PositiveIntegerField()),
                ("baseline_ndcg", models.FloatField()),
                ("candidate_ndcg", models.FloatField()),
                ("ndcg_gain", models.FloatField()),
                ("interval_low", models.FloatField(null=True)),
                ("interval_high", models.FloatField(null=True)),
                ("recall_gain", models.FloatField()),
                ("mrr_gain", models.FloatField()),
                ("regression_fraction", models.FloatField()),
                ("memory_artifact_sha256", models.CharField(db_collation="C", max_length=64)),
                ("manifest_sha256", models.CharField(db_collation="C", max_length=64)),
                (
                    "summary",
                    models.TextField(db_collation="C", help_text="The report without its long lists."),
                ),
                ("report", models.TextField(db_collation="C", help_text="RFC 8785; never changed.")),
                (
                    "checksum",
                    models.CharField(db_collation="C", help_text="SHA-256 of the report.", max_length=64),
                ),
                (
                    "holdout",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="result",
                        to="learning.holdout",
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
                "db_table": "learning_holdout_result",
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="QuerySet",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=apps.core.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("source", models.CharField(help_text="Where it came from.", max_length=12)),
                ("created_at", models.DateTimeField()),
                ("num_queries", models.PositiveIntegerField()),
                ("num_judgments", models.PositiveIntegerField()),
                ("content_sha256", models.CharField(db_collation="C", max_length=64)),
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
                "db_table": "learning_query_set",
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="JudgedQuery",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=apps.core.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("position", models.PositiveIntegerField()),
                (
                    "name",
                    models.CharField(
                        db_collation="C", help_text="The id that its maker gave it.", max_length=512
                    ),
                ),
                ("text", models.TextField()),
                (
                    "query_identity",
                    models.CharField(
                        db_collation="C", help_text="Keyed hash of the normalised text.", max_length=64
                    ),
                ),
                ("group_name", models.CharField(db_collation="C", max_length=512, null=True)),
                ("slice", models.CharField(db_collation="C", max_length=512, null=True)),
                (
                    "repos",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=256), size=None
                    ),
                ),
                (
                    "identities",
                    django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None),
                ),
                (
                    "grades",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.SmallIntegerField(), size=None
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
                (
                    "query_set",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="queries",
                        to="learning.queryset",
                    ),
                ),
            ],
            options={
                "db_table": "learning_judged_query",
                "abstract": False,
            },
        ),
        migrations.AddField(
            model_name="holdout",
            name="query_set",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="holdouts",
                to="learning.queryset",
            ),
        ),
        migrations.AddIndex(
            model_name="evaluation",
            index=models.Index(
                models.F("principal"),
                models.OrderBy(models.F("requested_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="learning_evaluation_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="evaluation",
            index=models.Index(
                models.F("workspace"),
                models.OrderBy(models.F("requested_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="learning_evaluation_staff",
            ),
        ),
        migrations.AddIndex(
            model_name="evaluation",
            index=models.Index(
                condition=models.Q(("status__in", ["queued", "running"])),
                fields=["requested_at"],
                name="learning_evaluation_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="evaluation",
            constraint=models.UniqueConstraint(
                fields=("principal", "id"), name="learning_evaluation_owner_key"
            ),
        ),
        migrations.AddConstraint(
            model_name="evaluation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("finished_at__isnull", False), ("status__in", ("succeeded", "failed", "cancelled"))
                    ),
                    models.Q(
                        models.Q(("status__in", ("succeeded", "failed", "cancelled")), _negated=True),
                        ("finished_at__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="learning_evaluation_finished",
            ),
        ),
        migrations.AddConstraint(
            model_name="evaluation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("status", "failed"), models.Q(("failure_code", ""), _negated=True)),
                    models.Q(models.Q(("status", "failed"), _negated=True), ("failure_code", "")),
                    _connector="OR",
                ),
                name="learning_evaluation_failure",
            ),
        ),
        migrations.AddConstraint(
            model_name="evaluation",
            constraint=models.CheckConstraint(
                condition=models.Q(("surface__in", ["results", "context"])),
                name="learning_evaluation_surface",
            ),
        ),
        migrations.AddConstraint(
            model_name="evaluatedquery",
            constraint=models.UniqueConstraint(
                fields=("principal", "id"), name="learning_evaluated_query_owner_key"
            ),
        ),
        migrations.AddConstraint(
            model_name="evaluatedquery",
            constraint=models.UniqueConstraint(
                fields=("evaluation", "group_id"), name="learning_evaluated_query_of_evaluation"
            ),
        ),
        migrations.AddConstraint(
            model_name="evaluatedquery",
            constraint=models.CheckConstraint(
                condition=models.Q(("split__in", ["train", "validation"])),
                name="learning_evaluated_query_split",
            ),
        ),
        migrations.AddIndex(
            model_name="evaluationresult",
            index=models.Index(
                fields=["principal", "validation_groups_sha256"], name="learning_evaluation_reused"
            ),
        ),
        migrations.AddConstraint(
            model_name="evaluationresult",
            constraint=models.UniqueConstraint(
                fields=("principal", "id"), name="learning_evaluation_result_owner_key"
            ),
        ),
        migrations.AddConstraint(
            model_name="evaluationresult",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "decision__in",
                        ["insufficient_data", "no_improvement", "improved_on_observed_candidates"],
                    )
                ),
                name="learning_evaluation_result_decision",
            ),
        ),
        migrations.AddConstraint(
            model_name="evaluationresult",
            constraint=models.CheckConstraint(
                condition=models.Q(("multipliers__len", 6)), name="learning_evaluation_result_multipliers"
            ),
        ),
        migrations.AddConstraint(
            model_name="evaluationresult",
            constraint=models.CheckConstraint(
                condition=models.Q(("checksum__regex", "^[0-9a-f]{64}$")),
                name="learning_evaluation_result_checksum",
            ),
        ),
        migrations.AddIndex(
            model_name="holdoutpair",
            index=models.Index(
                condition=models.Q(("baseline_receipt__isnull", False)),
                fields=["principal", "baseline_receipt"],
                name="learning_holdout_baseline",
            ),
        ),
        migrations.AddIndex(
            model_name="holdoutpair",
            index=models.Index(
                condition=models.Q(("candidate_receipt__isnull", False)),
                fields=["principal", "candidate_receipt"],
                name="learning_holdout_candidate",
            ),
        ),
        migrations.AddConstraint(
            model_name="holdoutpair",
            constraint=models.UniqueConstraint(
                fields=("principal", "id"), name="learning_holdout_pair_owner_key"
            ),
        ),
        migrations.AddConstraint(
            model_name="holdoutpair",
            constraint=models.UniqueConstraint(
                fields=("holdout", "position"), name="learning_holdout_pair_position"
            ),
        ),
        migrations.AddConstraint(
            model_name="holdoutresult",
            constraint=models.UniqueConstraint(
                fields=("principal", "id"), name="learning_holdout_result_owner_key"
            ),
        ),
        migrations.AddConstraint(
            model_name="holdoutresult",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("decision__in", ["insufficient_data", "no_improvement", "improved_full_retrieval"])
                ),
                name="learning_holdout_result_decision",
            ),
        ),
        migrations.AddConstraint(
            model_name="holdoutresult",
            constraint=models.CheckConstraint(
                condition=models.Q(("checksum__regex", "^[0-9a-f]{64}$")),
                name="learning_holdout_result_checksum",
            ),
        ),
        migrations.AddIndex(
            model_name="queryset",
            index=models.Index(
                models.F("principal"),
                models.OrderBy(models.F("created_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="learning_query_set_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="queryset",
            index=models.Index(
                models.F("workspace"),
                models.OrderBy(models.F("created_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="learning_query_set_staff",
            ),
        ),
        migrations.AddConstraint(
            model_name="queryset",
            constraint=models.UniqueConstraint(
                fields=("principal", "id"), name="learning_query_set_owner_key"
            ),
        ),
        migrations.AddConstraint(
            model_name="queryset",
            constraint=models.CheckConstraint(
                condition=models.Q(("source__in", ["api", "files", "control_set"])),
                name="learning_query_set_source",
            ),
        ),
        migrations.AddConstraint(
            model_name="queryset",
            constraint=models.CheckConstraint(
                condition=models.Q(("content_sha256__regex", "^[0-9a-f]{64}$")),
                name="learning_query_set_hash",
            ),
        ),
        migrations.AddConstraint(
            model_name="judgedquery",
            constraint=models.UniqueConstraint(
                fields=("principal", "id"), name="learning_judged_query_owner_key"
            ),
        ),
        migrations.AddConstraint(
            model_name="judgedquery",
            constraint=models.UniqueConstraint(
                fields=("query_set", "position"), name="learning_judged_query_position"
            ),
        ),
        migrations.AddConstraint(
            model_name="judgedquery",
            constraint=models.UniqueConstraint(
                fields=("query_set", "name"), name="learning_judged_query_name"
            ),
        ),
        migrations.AddConstraint(
            model_name="judgedquery",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("repos__len", models.F("identities__len")), ("grades__len", models.F("identities__len"))
                ),
                name="learning_judged_query_parallel",
            ),
        ),
        migrations.AddIndex(
            model_name="holdout",
            index=models.Index(
                models.F("principal"),
                models.OrderBy(models.F("requested_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="learning_holdout_newest",
            ),
        ),
        migrations.AddIndex(
            model_name="holdout",
            index=models.Index(
                models.F("workspace"),
                models.OrderBy(models.F("requested_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="learning_holdout_staff",
            ),
        ),
        migrations.AddIndex(
            model_name="holdout",
            index=models.Index(
                condition=models.Q(("status__in", ["queued", "running"])),
                fields=["requested_at"],
                name="learning_holdout_open",
            ),
        ),
        migrations.AddIndex(
            model_name="holdout",
            index=models.Index(fields=["principal", "evaluation"], name="learning_holdout_evaluation"),
        ),
        migrations.AddIndex(
            model_name="holdout",
            index=models.Index(fields=["principal", "query_set"], name="learning_holdout_query_set"),
        ),
        migrations.AddConstraint(
            model_name="holdout",
            constraint=models.UniqueConstraint(fields=("principal", "id"), name="learning_holdout_owner_key"),
        ),
        migrations.AddConstraint(
            model_name="holdout",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("finished_at__isnull", False), ("status__in", ("succeeded", "failed", "cancelled"))
                    ),
                    models.Q(
                        models.Q(("status__in", ("succeeded", "failed", "cancelled")), _negated=True),
                        ("finished_at__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="learning_holdout_finished",
            ),
        ),
        migrations.AddConstraint(
            model_name="holdout",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("status", "failed"), models.Q(("failure_code", ""), _negated=True)),
                    models.Q(models.Q(("status", "failed"), _negated=True), ("failure_code", "")),
                    _connector="OR",
                ),
                name="learning_holdout_failure",
            ),
        ),
        migrations.AddConstraint(
            model_name="holdout",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("query_set__isnull", False), ("trials__isnull", True)),
                    models.Q(("exploratory", True), ("query_set__isnull", True), ("trials__isnull", False)),
                    _connector="OR",
                ),
                name="learning_holdout_pairs",
            ),
        ),
        migrations.AddConstraint(
            model_name="holdout",
            constraint=models.CheckConstraint(
                condition=models.Q(("baseline_multipliers__len", 6), ("candidate_multipliers__len", 6)),
                name="learning_holdout_multipliers",
            ),
        ),
    ]
