"""Relevance judgments: explicit labels on what a receipt returned.

The law of this module: a record is never changed; a label that was wrong is corrected by another record, and the
fold (`selectors.labels`) says what is in force. What nobody labelled is unknown, never negative. A label asserts
no fact and touches no graph. A record keeps its receipt past the trace's time, not past its erasure.
"""

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q

from apps.core.db.rowpolicy import OwnerPolicy
from apps.core.models import OwnedModel
from apps.retrieval.schemas import MAX_LIMIT

MAX_JUDGED = MAX_LIMIT
"""Entries of a record: as many as a receipt has candidates."""
MAX_GRADE = 4
NO_GRADE = -1
PRINCIPAL = "principal"
"""The annotator of what a principal says itself."""


class JudgmentKind(models.TextChoices):
    LABELS = "labels"
    WITHDRAWAL = "withdrawal"


class Surface(models.TextChoices):
    RESULTS = "results"
    CONTEXT = "context"


class JudgmentMethod(models.TextChoices):
    EXPLICIT_USER = "explicit_user"
    STRUCTURED_EVALUATION = "structured_evaluation"


class Judgment(OwnedModel):
    """One record of labels, or of their withdrawal.

    node_ids, positions  (n,) what it speaks of, and the place of each among the receipt's candidates
    relevant, grades     (n,) the labels, and 0..4 or NO_GRADE beside each; empty for a withdrawal
    """

    feedback_id = models.UUIDField(help_text="The caller's; unique among all keys of the principal.")
    receipt: Any = models.ForeignKey(
        "retrieval.Receipt",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="judgments",
    )
    receipt_checksum = models.CharField(max_length=64, db_collation="C")
    kind = models.CharField(max_length=12, choices=JudgmentKind.choices)
    surface = models.CharField(max_length=8, choices=Surface.choices)
    method = models.CharField(max_length=24, choices=JudgmentMethod.choices)
    annotator = models.CharField(max_length=150)
    corrects = models.UUIDField(
        null=True, help_text="Feedback id of what is superseded or withdrawn. No key: that may be gone."
    )
    node_ids = ArrayField(models.UUIDField())
    positions = ArrayField(models.SmallIntegerField())
    relevant = ArrayField(models.BooleanField())
    grades = ArrayField(models.SmallIntegerField())
    reason = models.TextField(null=True)
    admitted_at = models.DateTimeField(
        help_text="The server's; later than every record of the receipt before."
    )

    row_policy = OwnerPolicy(staff="view_traces", append_only=True)
    raw_text: ClassVar[tuple[str, ...]] = ("reason",)
    retention: ClassVar[str] = "label"
    erasure: ClassVar[str] = "cascade"
    export_columns: ClassVar[tuple[str, ...]] = (
        "feedback_id",
        "receipt_id",
        "receipt_checksum",
        "kind",
        "surface",
        "method",
        "annotator",
        "corrects",
        "node_ids",
        "relevant",
        "grades",
        "reason",
        "admitted_at",
    )

    class Meta(OwnedModel.Meta):
        constraints = [
            *OwnedModel.Meta.constraints,
            models.UniqueConstraint(fields=["principal", "feedback_id"], name="feedback_judgment_feedback"),
            models.CheckConstraint(
                name="feedback_judgment_choices",
                condition=Q(surface__in=Surface.values, method__in=JudgmentMethod.values) & ~Q(annotator=""),
            ),
            models.CheckConstraint(
                name="feedback_judgment_entries",
                condition=Q(
                    node_ids__len__gte=1, node_ids__len__lte=MAX_JUDGED, positions__len=F("node_ids__len")
                ),
            ),
            models.CheckConstraint(
                name="feedback_judgment_kind",
                condition=Q(
                    kind=JudgmentKind.LABELS, relevant__len=F("node_ids__len"), grades__len=F("node_ids__len")
                )
                | Q(kind=JudgmentKind.WITHDRAWAL, corrects__isnull=False, relevant__len=0, grades__len=0),
            ),
        ]
        indexes = [
            models.Index(
                F("principal"), F("admitted_at").desc(), F("id").desc(), name="feedback_judgment_history"
            ),
            models.Index(fields=["principal", "receipt", "admitted_at"], name="feedback_judgment_receipt"),
            models.Index(fields=["workspace", "admitted_at"], name="feedback_judgment_age"),
            GinIndex(fields=["node_ids"], name="feedback_judgment_nodes"),
        ]
