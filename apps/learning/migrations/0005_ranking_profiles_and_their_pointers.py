"""Ranking profiles, the pointers to the active ones, proposals, drills and re-checks."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import apps.core.ids


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_superusers_manage_staff"),
        ("learning", "0004_lifetime_of_evidence"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="RankingProfile",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=apps.core.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("created_at", models.DateTimeField()),
                (
                    "scopes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64),
                        help_text="Null = all.",
                        null=True,
                        size=None,
                    ),
                ),
                (
                    "scope_key",
                    models.CharField(
                        db_collation="C", help_text="The scope set as one text; * = all.", max_length=1100
                    ),
                ),
                ("surface", models.CharField(max_length=8)),
                ("formula", models.CharField(max_length=16)),
                (
                    "multipliers",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.FloatField(),
                        help_text="semantic, lexical, graph, recency, salience, confidence",
                        size=None,
                    ),
                ),
                ("evaluation_id", models.UUIDField()),
                ("holdout_id", models.UUIDField()),
                (
                    "manifest_sha256",
                    models.CharField(
                        db_collation="C", help_text="Over all that the profile is made of.", max_length=64
                    ),
                ),
                ("contract", models.CharField(help_text="Scorer contract version.", max_length=32)),
                ("policy_id", models.UUIDField(help_text="The stored policy of kind scoring.", null=True)),
                ("policy_sha256", models.CharField(db_collation="C", max_length=64)),
                (
                    "gate_policy_id",
                    models.UUIDField(help_text="The stored policy of kind gate that both decisions passed."),
                ),
                ("effective_until", models.DateTimeField(null=True)),
                ("evidence", models.JSONField()),
                (
                    "baseline_profile",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="learning.rankingprofile",
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
                "db_table": "learning_ranking_profile",
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="ActivationProposal",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=apps.core.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "scope_key",
                    models.CharField(
                        db_collation="C", help_text="The scope set as one text; * = all.", max_length=1100
                    ),
                ),
                ("version", models.CharField(db_collation="C", max_length=64)),
                ("proposed_at", models.DateTimeField()),
                ("valid_until", models.DateTimeField()),
                ("reason", models.TextField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("open", "Open"),
                            ("approved", "Approved"),
                            ("withdrawn", "Withdrawn"),
                            ("voided", "Voided"),
                        ],
                        default="open",
                        max_length=10,
                    ),
                ),
                ("decided_at", models.DateTimeField(null=True)),
                (
                    "decided_by",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
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
                    "proposed_by",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
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
                    "expected_profile",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="learning.rankingprofile",
                    ),
                ),
                (
                    "profile",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="learning.rankingprofile",
                    ),
                ),
            ],
            options={
                "db_table": "learning_activation_proposal",
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Recheck",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=apps.core.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("checked_at", models.DateTimeField()),
                (
                    "input_sha256",
                    models.CharField(
                        db_collation="C", help_text="Over the labels and receipts.", max_length=64
                    ),
                ),
                (
                    "verdict",
                    models.CharField(
                        choices=[
                            ("holds", "Holds"),
                            ("regressed", "Regressed"),
                            ("insufficient_data", "Insufficient"),
                        ],
                        max_length=20,
                    ),
                ),
                ("groups", models.PositiveIntegerField(help_text="Query groups judged since.")),
                (
                    "ndcg_gain",
                    models.FloatField(help_text="Mean over groups, against the baseline.", null=True),
                ),
                ("interval_low", models.FloatField(null=True)),
                ("interval_high", models.FloatField(null=True)),
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
                    "profile",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="learning.rankingprofile",
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
            name="RollbackDrill",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=apps.core.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("drilled_at", models.DateTimeField()),
                (
                    "actor",
                    models.CharField(
                        choices=[
                            ("staff", "staff"),
                            ("principal", "a principal"),
                            ("platform", "the platform"),
                        ],
                        max_length=10,
                    ),
                ),
                ("reason", models.TextField()),
                ("passed", models.BooleanField()),
                (
                    "evidence",
                    models.JSONField(help_text="Each step with what was expected and what was seen."),
                ),
                (
                    "actor_user",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
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
                    "profile",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="learning.rankingprofile",
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
                "db_table": "learning_rollback_drill",
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Transition",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=apps.core.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
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
                (
                    "scope_key",
                    models.CharField(
                        db_collation="C", help_text="The scope set as one text; * = all.", max_length=1100
                    ),
                ),
                ("recorded_at", models.DateTimeField()),
                ("kind", models.CharField(max_length=10)),
                (
                    "change_id",
                    models.CharField(
                        help_text="The command's key; null = the platform.", max_length=128, null=True
                    ),
                ),
                (
                    "actor",
                    models.CharField(
                        choices=[
                            ("staff", "staff"),
                            ("principal", "a principal"),
                            ("platform", "the platform"),
                        ],
                        max_length=10,
                    ),
                ),
                ("drill_id", models.UUIDField(help_text="The rehearsal that it belongs to.", null=True)),
                ("reason", models.TextField(blank=True)),
                ("evidence", models.JSONField(default=dict)),
                (
                    "actor_user",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "expected_profile",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="learning.rankingprofile",
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
                    "profile",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="learning.rankingprofile",
                    ),
                ),
                (
                    "proposal",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="learning.activationproposal",
                    ),
                ),
                (
                    "resulting_profile",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="learning.rankingprofile",
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
        migrations.AddIndex(
            model_name="rankingprofile",
            index=models.Index(
                models.F("principal"),
                models.OrderBy(models.F("created_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                name="learning_profile_newest",
            ),
        ),
        migrations.AddConstraint(
            model_name="rankingprofile",
            constraint=models.UniqueConstraint(
                fields=("principal", "id"), name="learning_ranking_profile_owner_key"
            ),
        ),
        migrations.AddConstraint(
            model_name="rankingprofile",
            constraint=models.CheckConstraint(
                condition=models.Q(("surface", "results")), name="learning_ranking_profile_surface"
            ),
        ),
        migrations.AddConstraint(
            model_name="rankingprofile",
            constraint=models.CheckConstraint(
                condition=models.Q(("formula", "weighted")), name="learning_ranking_profile_formula"
            ),
        ),
        migrations.AddConstraint(
            model_name="rankingprofile",
            constraint=models.CheckConstraint(
                condition=models.Q(("manifest_sha256__regex", "^[0-9a-f]{64}$")),
                name="learning_ranking_profile_manifest",
            ),
        ),
        migrations.AddConstraint(
            model_name="rankingprofile",
            constraint=models.CheckConstraint(
                condition=models.Q(("multipliers__len", 6)), name="learning_ranking_profile_multipliers"
            ),
        ),
        migrations.AddIndex(
            model_name="activationproposal",
            index=models.Index(
                condition=models.Q(("status", "open")),
                fields=["principal", "scope_key"],
                name="learning_proposal_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="activationproposal",
            constraint=models.UniqueConstraint(
                fields=("principal", "id"), name="learning_activation_proposal_owner_key"
            ),
        ),
        migrations.AddConstraint(
            model_name="activationproposal",
            constraint=models.CheckConstraint(
                condition=models.Q(("status__in", ["open", "approved", "withdrawn", "voided"])),
                name="learning_activation_proposal_status",
            ),
        ),
        migrations.AddIndex(
            model_name="recheck",
            index=models.Index(
                models.F("principal"),
                models.F("profile"),
                models.OrderBy(models.F("checked_at"), descending=True),
                name="learning_recheck_newest",
            ),
        ),
        migrations.AddConstraint(
            model_name="recheck",
            constraint=models.UniqueConstraint(fields=("principal", "id"), name="learning_recheck_owner_key"),
        ),
        migrations.AddConstraint(
            model_name="recheck",
            constraint=models.CheckConstraint(
                condition=models.Q(("verdict__in", ["holds", "regressed", "insufficient_data"])),
                name="learning_recheck_verdict",
            ),
        ),
        migrations.AddIndex(
            model_name="rollbackdrill",
            index=models.Index(
                models.F("principal"),
                models.F("profile"),
                models.OrderBy(models.F("drilled_at"), descending=True),
                name="learning_drill_newest",
            ),
        ),
        migrations.AddConstraint(
            model_name="rollbackdrill",
            constraint=models.UniqueConstraint(
                fields=("principal", "id"), name="learning_rollback_drill_owner_key"
            ),
        ),
        migrations.AddConstraint(
            model_name="rollbackdrill",
            constraint=models.CheckConstraint(
                condition=models.Q(("actor__in", ["staff", "principal", "platform"])),
                name="learning_rollback_drill_actor",
            ),
        ),
        migrations.AddIndex(
            model_name="transition",
            index=models.Index(
                models.F("principal"),
                models.OrderBy(models.F("recorded_at"), descending=True),
                models.OrderBy(models.F("id"), descending=True),
                condition=models.Q(("drill_id__isnull", True)),
                name="learning_transition_newest",
            ),
        ),
        migrations.AddConstraint(
            model_name="transition",
            constraint=models.UniqueConstraint(
                fields=("principal", "id"), name="learning_transition_owner_key"
            ),
        ),
        migrations.AddConstraint(
            model_name="transition",
            constraint=models.UniqueConstraint(
                fields=("principal", "scope_key", "recorded_at"), name="learning_transition_order"
            ),
        ),
        migrations.AddConstraint(
            model_name="transition",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["activate", "deactivate", "rollback", "expire"])),
                name="learning_transition_kind",
            ),
        ),
        migrations.AddConstraint(
            model_name="transition",
            constraint=models.CheckConstraint(
                condition=models.Q(("actor__in", ["staff", "principal", "platform"])),
                name="learning_transition_actor",
            ),
        ),
        migrations.AddConstraint(
            model_name="transition",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("kind__in", ["deactivate", "expire"]), _negated=True),
                    ("resulting_profile__isnull", True),
                    _connector="OR",
                ),
                name="learning_transition_result",
            ),
        ),
    ]
