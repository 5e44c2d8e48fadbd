"""Context ablation: what a packed context is without some entries, and what an answer was worth with and without one.

The law: these are records about one context of one receipt. They never change a context, a label or a rank, and no
text is kept: the counterfactual is rendered again from the memory whenever it is asked for.
"""

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from apps.core.db.rowpolicy import OwnerPolicy
from apps.core.models import OwnedModel
from apps.retrieval.schemas import MAX_LIMIT

_HASH = r"^[0-9a-f]{64}$"


class Ablation(OwnedModel):
    """A context without the entries of `node_ids`, which stand in the order of the context.

    node_ids, token_costs   (n,) what was taken out, and the tokens of each entry as it was packed
    baseline_tokens, counterfactual_tokens   of the whole texts, counted by `tokenizer`
    """

    receipt: Any = models.ForeignKey(
        "retrieval.Receipt",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="ablations",
    )
    receipt_checksum = models.CharField(max_length=64, db_collation="C")
    baseline_sha256 = models.CharField(max_length=64, db_collation="C")
    counterfactual_sha256 = models.CharField(max_length=64, db_collation="C")
    node_ids = ArrayField(models.UUIDField())
    token_costs = ArrayField(models.IntegerField())
    tokenizer = models.CharField(max_length=128)
    baseline_tokens = models.IntegerField()
    counterfactual_tokens = models.IntegerField()
    admitted_at = models.DateTimeField(help_text="The server's.")

    row_policy = OwnerPolicy(staff="view_traces", append_only=True)
    retention: ClassVar[str] = "label"
    erasure: ClassVar[str] = "cascade"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "receipt_id",
        "receipt_checksum",
        "baseline_sha256",
        "counterfactual_sha256",
        "node_ids",
        "token_costs",
        "tokenizer",
        "baseline_tokens",
        "counterfactual_tokens",
        "admitted_at",
    )

    class Meta(OwnedModel.Meta):
        constraints = [
            *OwnedModel.Meta.constraints,
            models.UniqueConstraint(
                fields=["principal", "receipt", "node_ids", "tokenizer"], name="feedback_ablation_once"
            ),
            models.CheckConstraint(
                name="feedback_ablation_hashes",
                condition=Q(baseline_sha256__regex=_HASH, counterfactual_sha256__regex=_HASH),
            ),
            models.CheckConstraint(
                name="feedback_ablation_entries",
                condition=Q(
                    node_ids__len__gte=1, node_ids__len__lte=MAX_LIMIT, token_costs__len=F("node_ids__len")
                ),
            ),
            models.CheckConstraint(
                name="feedback_ablation_tokens",
                condition=Q(baseline_tokens__gte=0, counterfactual_tokens__gte=0),
            ),
        ]
        indexes = [
            models.Index(fields=["principal", "receipt", "admitted_at"], name="feedback_ablation_receipt"),
            models.Index(fields=["workspace", "admitted_at"], name="feedback_ablation_age"),
        ]


class PresenceTier(models.TextChoices):
    """What the presence of a cited entry was worth: (right with it, right without it)."""

    LOAD_BEARING = "load_bearing"  # (yes, no)
    CITED_NON_FLIPPING = "cited_non_flipping"  # (yes, yes)
    MISLEADING = "misleading"  # (no, yes)
    CITED_WRONG_NONCURING = "cited_wrong_noncuring"  # (no, no)

    @property
    def weight(self) -> float:
        return _WEIGHTS[self]

    @classmethod
    def of(cls, *, baseline_correct: bool, counterfactual_correct: bool) -> "PresenceTier":
        if baseline_correct:
            return cls.CITED_NON_FLIPPING if counterfactual_correct else cls.LOAD_BEARING
        return cls.MISLEADING if counterfactual_correct else cls.CITED_WRONG_NONCURING


_WEIGHTS = {
    PresenceTier.LOAD_BEARING: 1.0,
    PresenceTier.CITED_NON_FLIPPING: 0.6,
    PresenceTier.MISLEADING: -1.0,
    PresenceTier.CITED_WRONG_NONCURING: 0.0,
}


class PresenceAssessment(OwnedModel):
    """Whether an answer was right with and without one cited entry, by the caller's own evaluation.

    The citation set is named without a key: it may be gone before this record is.
    """

    ablation: Any = models.ForeignKey(
        Ablation, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="assessments"
    )
    evaluation_id = models.CharField(max_length=128, help_text="The caller's.")
    citation_id = models.UUIDField(help_text="The citation set that cites the entry.")
    baseline_correct = models.BooleanField()
    counterfactual_correct = models.BooleanField()
    tier = models.CharField(max_length=24, choices=PresenceTier.choices)
    baseline_answer_sha256 = models.CharField(max_length=64, db_collation="C", null=True)
    counterfactual_answer_sha256 = models.CharField(max_length=64, db_collation="C", null=True)
    admitted_at = models.DateTimeField(help_text="The server's.")

    row_policy = OwnerPolicy(staff="view_traces", append_only=True)
    retention: ClassVar[str] = "label"
    erasure: ClassVar[str] = "cascade"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "ablation_id",
        "evaluation_id",
        "citation_id",
        "baseline_correct",
        "counterfactual_correct",
        "tier",
        "baseline_answer_sha256",
        "counterfactual_answer_sha256",
        "admitted_at",
    )

    class Meta(OwnedModel.Meta):
        db_table = "feedback_assessment"
        constraints = [
            models.UniqueConstraint(fields=["principal", "id"], name="feedback_assessment_owner_key"),
            models.UniqueConstraint(
                fields=["principal", "ablation", "evaluation_id"], name="feedback_assessment_once"
            ),
            models.CheckConstraint(
                name="feedback_assessment_tier",
                condition=Q(baseline_correct=True, counterfactual_correct=False, tier="load_bearing")
                | Q(baseline_correct=True, counterfactual_correct=True, tier="cited_non_flipping")
                | Q(baseline_correct=False, counterfactual_correct=True, tier="misleading")
                | Q(baseline_correct=False, counterfactual_correct=False, tier="cited_wrong_noncuring"),
            ),
            models.CheckConstraint(
                name="feedback_assessment_hashes",
                condition=(Q(baseline_answer_sha256__isnull=True) | Q(baseline_answer_sha256__regex=_HASH))
                & (
                    Q(counterfactual_answer_sha256__isnull=True)
                    | Q(counterfactual_answer_sha256__regex=_HASH)
                ),
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "admitted_at"], name="feedback_assessment_age"),
        ]
