"""Offline evaluations.

The law: a result is never changed, and is computed from stored receipts and labels alone, so that it can be
computed again. There is no way to hand one in. It keeps its receipts past the time of their traces.
"""

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from apps.core.db.rowpolicy import OwnerPolicy
from apps.core.models import OwnedModel
from apps.learning.models.runs import RUN_EXPORT, UNDER_WAY, LearningRun

SHA256 = r"^[0-9a-f]{64}$"


class Evaluation(LearningRun):
    """A question: do other multipliers rank better what was judged? `result` is there when it has succeeded."""

    surface = models.CharField(max_length=7)
    source = models.CharField(
        max_length=8, default="native", help_text="Receipts of the platform, or imported ones."
    )
    query_groups: Any = models.JSONField(
        default=dict, help_text="Receipt id → the caller's name of its group of paraphrases."
    )

    row_policy = OwnerPolicy(staff="view_traces")
    raw_text: ClassVar[tuple[str, ...]] = ("query_groups",)
    retention: ClassVar[str] = "learning: days of the gate policy"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = (*RUN_EXPORT, "surface", "source")

    class Meta(LearningRun.Meta):
        abstract = False
        constraints = [
            *LearningRun.Meta.constraints,
            models.CheckConstraint(
                name="learning_evaluation_surface", condition=Q(surface__in=["results", "context"])
            ),
            models.CheckConstraint(
                name="learning_evaluation_source",
                condition=Q(source="native") | Q(source="imported", exploratory=True),
            ),
        ]
        indexes = [
            models.Index(
                F("principal"),
                F("requested_at").desc(),
                F("id").desc(),
                name="learning_evaluation_newest",
            ),
            models.Index(
                F("workspace"), F("requested_at").desc(), F("id").desc(), name="learning_evaluation_staff"
            ),
            models.Index(fields=["requested_at"], condition=UNDER_WAY, name="learning_evaluation_open"),
        ]


class EvaluationResult(OwnedModel):
    """The report as canonical JSON with its checksum, and beside it what lists and checks read."""

    evaluation: Any = models.OneToOneField(
        Evaluation, on_delete=models.DO_NOTHING, db_constraint=False, related_name="result"
    )
    recorded_at = models.DateTimeField()
    decision = models.CharField(max_length=40)
    training_groups = models.PositiveIntegerField()
    validation_groups = models.PositiveIntegerField()
    ndcg_gain = models.FloatField(null=True)
    interval_low = models.FloatField(null=True)
    interval_high = models.FloatField(null=True)
    pairwise_gain = models.FloatField(null=True)
    loss_before = models.FloatField(null=True)
    loss_after = models.FloatField(null=True)
    multipliers = ArrayField(models.FloatField(), help_text="Six, in the order of the features.")
    scorer_contract = models.CharField(max_length=32)
    input_checksum = models.CharField(max_length=64, db_collation="C")
    manifest_sha256 = models.CharField(max_length=64, db_collation="C")
    validation_groups_sha256 = models.CharField(max_length=64, db_collation="C")
    earlier_evaluations = models.PositiveIntegerField(
        help_text="Fitted before on the same validation groups."
    )
    summary = models.TextField(db_collation="C", help_text="The report without its long lists.")
    report = models.TextField(db_collation="C", help_text="RFC 8785; never changed.")
    checksum = models.CharField(max_length=64, db_collation="C", help_text="SHA-256 of the report.")

    row_policy = OwnerPolicy(staff="view_traces", append_only=True)
    retention: ClassVar[str] = "as long as the evaluation"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = (
        "evaluation_id",
        "recorded_at",
        "decision",
        "ndcg_gain",
        "interval_low",
        "interval_high",
        "multipliers",
        "manifest_sha256",
        "report",
        "checksum",
    )

    class Meta(OwnedModel.Meta):
        db_table = "learning_evaluation_result"
        constraints = [
            models.UniqueConstraint(fields=["principal", "id"], name="learning_evaluation_result_owner_key"),
            models.CheckConstraint(
                name="learning_evaluation_result_decision",
                condition=Q(
                    decision__in=["insufficient_data", "no_improvement", "improved_on_observed_candidates"]
                ),
            ),
            models.CheckConstraint(
                name="learning_evaluation_result_multipliers", condition=Q(multipliers__len=6)
            ),
            models.CheckConstraint(
                name="learning_evaluation_result_checksum", condition=Q(checksum__regex=SHA256)
            ),
        ]
        indexes = [
            models.Index(fields=["principal", "validation_groups_sha256"], name="learning_evaluation_reused"),
        ]


class EvaluatedQuery(OwnedModel):
    """One query group of a result, at unity and under the proposal."""

    evaluation: Any = models.ForeignKey(
        Evaluation,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="queries",
    )
    group_id = models.CharField(max_length=64, db_collation="C")
    split = models.CharField(max_length=10)
    receipt_ids = ArrayField(models.UUIDField())
    baseline_pairwise_accuracy = models.FloatField()
    candidate_pairwise_accuracy = models.FloatField()
    baseline_judged_ndcg = models.FloatField()
    candidate_judged_ndcg = models.FloatField()

    row_policy = OwnerPolicy(staff="view_traces", append_only=True)
    retention: ClassVar[str] = "as long as the evaluation"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = (
        "evaluation_id",
        "group_id",
        "split",
        "receipt_ids",
        "baseline_pairwise_accuracy",
        "candidate_pairwise_accuracy",
        "baseline_judged_ndcg",
        "candidate_judged_ndcg",
    )

    class Meta(OwnedModel.Meta):
        db_table = "learning_evaluated_query"
        constraints = [
            models.UniqueConstraint(fields=["principal", "id"], name="learning_evaluated_query_owner_key"),
            models.UniqueConstraint(
                fields=["evaluation", "group_id"], name="learning_evaluated_query_of_evaluation"
            ),
            models.CheckConstraint(
                name="learning_evaluated_query_split", condition=Q(split__in=["train", "validation"])
            ),
        ]
