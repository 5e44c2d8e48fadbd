"""What tasks measured: numbers over time, of the installation or of a workspace."""

from typing import Any, ClassVar

from django.db import models
from django.db.models.functions import Now

from apps.core.db.rowpolicy import APP, STAFF, CustomPolicy
from apps.core.ids import uuid7
from apps.core.models import Declared
from apps.operations.rules import WATCHERS, by_grant

READERS = ("view_traces", *WATCHERS)
MEASURED = CustomPolicy(
    rules=(
        ("app", "ALL", APP, "true", "true"),
        ("staff", "SELECT", STAFF, by_grant(*READERS), None),
    ),
    allow={APP: "raw", STAFF: "r"},
)


class Measured(Declared):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace: Any = models.ForeignKey(
        "accounts.Workspace", null=True, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    name = models.CharField(max_length=100)
    labels: Any = models.JSONField(default=dict, help_text="Codes that tell series of one name apart.")
    value = models.FloatField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        abstract = True


class Sample(Measured):
    """One measurement. Written by `operations.samples.record` alone."""

    retention: ClassVar[str] = "samples: 400 days"
    erasure: ClassVar[str] = "keep: counts of many, of no one principal"
    export_columns: ClassVar[tuple[str, ...]] = ("workspace", "name", "labels", "value", "at")
    row_policy = MEASURED

    class Meta:
        verbose_name = "sample"
        indexes = [
            models.Index(fields=["name", "workspace", "-at"], name="operations_sample_series"),
            models.Index(fields=["at"], name="operations_sample_at"),
        ]


class NewestSample(Measured):
    """The newest measurement of each series: what `/metrics` shows without a search in the past."""

    retention: ClassVar[str] = "samples: 400 days"
    erasure: ClassVar[str] = "keep: counts of many, of no one principal"
    export_columns: ClassVar[tuple[str, ...]] = ("workspace", "name", "labels", "value", "at")
    row_policy = MEASURED

    class Meta:
        verbose_name = "newest sample"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "name", "labels"],
                name="operations_newestsample_series",
                nulls_distinct=False,
            )
        ]
