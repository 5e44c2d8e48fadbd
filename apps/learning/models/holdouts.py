"""Full-retrieval holdouts: both arms of every query answered by the platform, and both receipts kept.

The law: a result is never changed, is computed from stored receipts and judgments alone, and pairs that the
platform did not run itself are exploratory for good.
"""

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from apps.core.db.rowpolicy import OwnerPolicy
from apps.core.models import OwnedModel
from apps.learning.models.evaluations import SHA256, Evaluation
from apps.learning.models.query_sets import QuerySet
from apps.learning.models.runs import RUN_EXPORT, UNDER_WAY, LearningRun


class Holdout(LearningRun):
    """A question: do the multipliers of an evaluation retrieve better on queries that it has not seen?

    With a query set the platform runs both arms; without one `trials` name pairs of receipts that are there.
    """

    evaluation: Any = models.ForeignKey(
        Evaluation,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="holdouts",
    )
    query_set: Any = models.ForeignKey(
        QuerySet,
        null=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="holdouts",
    )
    limit = models.PositiveSmallIntegerField(help_text="Rows of each retrieval.")
    trials: Any = models.JSONField(null=True, help_text="Imported pairs as they were given.")
    memory_artifact_sha256 = models.CharField(
        max_length=64, blank=True, help_text="What imported pairs say of the memory that answered."
    )
    baseline_multipliers = ArrayField(models.FloatField(), help_text="Six, in the order of the features.")
    candidate_multipliers = ArrayField(models.FloatField())

    row_policy = OwnerPolicy(staff="view_traces")
    retention: ClassVar[str] = "learning: days of the gate policy"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = (
        *RUN_EXPORT,
        "evaluation_id",
        "query_set_id",
        "limit",
        "trials",
        "baseline_multipliers",
        "candidate_multipliers",
    )

    class Meta(LearningRun.Meta):
        abstract = False
        constraints = [
            *LearningRun.Meta.constraints,
            models.CheckConstraint(
                name="learning_holdout_pairs",
                condition=Q(query_set__isnull=False, trials__isnull=True)
                | Q(query_set__isnull=True, trials__isnull=False, exploratory=True),
            ),
            models.CheckConstraint(
                name="learning_holdout_multipliers",
                condition=Q(baseline_multipliers__len=6, candidate_multipliers__len=6),
            ),
        ]
        indexes = [
            models.Index(
                F("principal"), F("requested_at").desc(), F("id").desc(), name="learning_holdout_newest"
            ),
            models.Index(
                F("workspace"), F("requested_at").desc(), F("id").desc(), name="learning_holdout_staff"
            ),
            models.Index(fields=["requested_at"], condition=UNDER_WAY, name="learning_holdout_open"),
            models.Index(fields=["principal", "evaluation"], name="learning_holdout_evaluation"),
            models.Index(fields=["principal", "query_set"], name="learning_holdout_query_set"),
        ]


class HoldoutResult(OwnedModel):
    """The report as canonical JSON with its checksum, and beside it what lists and checks read."""

    holdout: Any = models.OneToOneField(
        Holdout, on_delete=models.DO_NOTHING, db_constraint=False, related_name="result"
    )
    recorded_at = models.DateTimeField()
    decision = models.CharField(max_length=40)
    failed_gates = ArrayField(models.CharField(max_length=40))
    query_groups = models.PositiveIntegerField()
    baseline_ndcg = models.FloatField()
    candidate_ndcg = models.FloatField()
    ndcg_gain = models.FloatField()
    interval_low = models.FloatField(null=True)
    interval_high = models.FloatField(null=True)
    recall_gain = models.FloatField()
    mrr_gain = models.FloatField()
    regression_fraction = models.FloatField()
    memory_artifact_sha256 = models.CharField(max_length=64, db_collation="C")
    manifest_sha256 = models.CharField(max_length=64, db_collation="C")
    summary = models.TextField(db_collation="C", help_text="The report without its long lists.")
    report = models.TextField(db_collation="C", help_text="RFC 8785; never changed.")
    checksum = models.CharField(max_length=64, db_collation="C", help_text="SHA-256 of the report.")

    row_policy = OwnerPolicy(staff="view_traces", append_only=True)
    retention: ClassVar[str] = "as long as the holdout"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = (
        "holdout_id",
        "recorded_at",
        "decision",
        "failed_gates",
        "ndcg_gain",
        "interval_low",
        "interval_high",
        "manifest_sha256",
        "report",
        "checksum",
    )

    class Meta(OwnedModel.Meta):
        db_table = "learning_holdout_result"
        constraints = [
            models.UniqueConstraint(fields=["principal", "id"], name="learning_holdout_result_owner_key"),
            models.CheckConstraint(
                name="learning_holdout_result_decision",
                condition=Q(decision__in=["insufficient_data", "no_improvement", "improved_full_retrieval"]),
            ),
            models.CheckConstraint(
                name="learning_holdout_result_checksum", condition=Q(checksum__regex=SHA256)
            ),
        ]


class HoldoutPair(OwnedModel):
    """One query answered under both arms: its receipts, and what each arm reached."""

    holdout: Any = models.ForeignKey(
        Holdout, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="pairs"
    )
    position = models.PositiveIntegerField()
    query_name = models.CharField(max_length=512, db_collation="C", blank=True)
    group_id = models.CharField(max_length=512, db_collation="C")
    slices = ArrayField(models.CharField(max_length=512), default=list)
    baseline_request_id = models.CharField(max_length=512, db_collation="C")
    candidate_request_id = models.CharField(max_length=512, db_collation="C")
    baseline_receipt: Any = models.ForeignKey(
        "retrieval.Receipt",
        null=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    candidate_receipt: Any = models.ForeignKey(
        "retrieval.Receipt",
        null=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    baseline_documents = ArrayField(
        models.SmallIntegerField(),
        help_text="Of each row the place of its document among the judged ones; -1 for one that nobody judged.",
    )
    candidate_documents = ArrayField(models.SmallIntegerField())
    baseline_recall = models.FloatField()
    candidate_recall = models.FloatField()
    baseline_ndcg = models.FloatField()
    candidate_ndcg = models.FloatField()
    baseline_mrr = models.FloatField()
    candidate_mrr = models.FloatField()

    row_policy = OwnerPolicy(staff="view_traces", append_only=True)
    retention: ClassVar[str] = "as long as the holdout"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = (
        "holdout_id",
        "position",
        "query_name",
        "group_id",
        "slices",
        "baseline_request_id",
        "candidate_request_id",
        "baseline_recall",
        "candidate_recall",
        "baseline_ndcg",
        "candidate_ndcg",
        "baseline_mrr",
        "candidate_mrr",
    )

    class Meta(OwnedModel.Meta):
        db_table = "learning_holdout_pair"
        constraints = [
            models.UniqueConstraint(fields=["principal", "id"], name="learning_holdout_pair_owner_key"),
            models.UniqueConstraint(fields=["holdout", "position"], name="learning_holdout_pair_position"),
        ]
        indexes = [
            models.Index(
                fields=["principal", "baseline_receipt"],
                name="learning_holdout_baseline",
                condition=Q(baseline_receipt__isnull=False),
            ),
            models.Index(
                fields=["principal", "candidate_receipt"],
                name="learning_holdout_candidate",
                condition=Q(candidate_receipt__isnull=False),
            ),
        ]
