"""Retention reviews: whether a workspace's raw records may still live for as long as they do."""

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from apps.core.db.rowpolicy import APP, STAFF, CustomPolicy, granted
from apps.core.models import WorkspaceModel

READ = granted("review_retention", "operate_collection", "audit")
WRITE = granted("review_retention")
USER = "(SELECT nullif(current_setting('memory.user_id', true), '')::int)"


class Decision(models.TextChoices):
    KEEP = "keep"
    SHORTEN = "shorten"
    EXTEND = "extend_needs_schema_change"


class RetentionReview(WorkspaceModel):
    """One decision with the inputs that it was made on. A shortening waits for a second person, and then for its
    job; nothing else of a row is ever changed."""

    subject = models.CharField(max_length=40, help_text="Which records: a registered subject.")
    decision = models.CharField(max_length=32, choices=Decision.choices)
    due_at = models.DateTimeField(help_text="When the review was due.")
    next_due_at = models.DateTimeField()
    limits: Any = models.JSONField(default=dict, help_text="The shorter limits of a shortening.")
    inputs: Any = models.JSONField(help_text="What the decision was made on; numbers, null: not measured.")
    reason = models.CharField(max_length=500)
    made_by: Any = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    made_at = models.DateTimeField(db_default=Now())
    approved_by: Any = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    approved_at = models.DateTimeField(null=True)
    carried_out_at = models.DateTimeField(null=True, help_text="When old rows had been shortened.")

    retention: ClassVar[str] = "reviews: 1826 days"
    erasure: ClassVar[str] = "keep: numbers of a workspace, names no principal"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "subject",
        "decision",
        "due_at",
        "next_due_at",
        "limits",
        "inputs",
        "made_at",
        "approved_at",
        "carried_out_at",
    )
    row_policy = CustomPolicy(
        rules=(
            ("app", "ALL", APP, "true", "true"),
            ("staff", "SELECT", STAFF, READ, None),
            ("staff_decide", "INSERT", STAFF, None, f"({WRITE}) AND made_by_id = {USER}"),
            ("staff_approve", "UPDATE", STAFF, WRITE, f"({WRITE}) AND approved_by_id = {USER}"),
        ),
        allow={APP: "rw", STAFF: "raw"},
    )

    class Meta:
        verbose_name = "retention review"
        constraints = [
            models.CheckConstraint(
                name="operations_retentionreview_decision", condition=Q(decision__in=Decision.values)
            ),
            models.CheckConstraint(
                name="operations_retentionreview_four_eyes",
                condition=Q(approved_by__isnull=True, approved_at__isnull=True, carried_out_at__isnull=True)
                | (
                    Q(decision=Decision.SHORTEN, approved_by__isnull=False, approved_at__isnull=False)
                    & ~Q(approved_by=F("made_by"))
                ),
            ),
            models.CheckConstraint(
                name="operations_retentionreview_ahead", condition=Q(next_due_at__gt=F("made_at"))
            ),
        ]
        indexes = [models.Index(fields=["workspace", "subject", "-made_at"], name="operations_review_newest")]

    def __str__(self) -> str:
        return f"{self.subject}: {self.decision}"
