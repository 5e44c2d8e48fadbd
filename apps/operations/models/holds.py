"""Legal holds. A hold keeps records from deletion; it hides nothing, shows nothing and restarts no clock."""

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from apps.core.db.rowpolicy import STAFF, CustomPolicy, granted
from apps.core.models import WorkspaceModel

READ = granted("review_retention", "audit")
WRITE = granted("review_retention")
USER = "(SELECT nullif(current_setting('memory.user_id', true), '')::int)"


class LegalHold(WorkspaceModel):
    """A case. Stays after its release; only the release may ever be written, once, by another person."""

    reference = models.CharField(max_length=100, help_text="The case's name elsewhere.")
    reason = models.CharField(max_length=500)
    placed_by: Any = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", editable=False
    )
    placed_at = models.DateTimeField(db_default=Now(), editable=False)
    released_by: Any = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+", editable=False
    )
    released_at = models.DateTimeField(null=True, editable=False)
    release_reason = models.CharField(max_length=500, blank=True)

    retention: ClassVar[str] = "holds: 1826 days after release"
    erasure: ClassVar[str] = "keep: a case of the workspace; items are ids"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "reference",
        "reason",
        "placed_by",
        "placed_at",
        "released_by",
        "released_at",
        "release_reason",
    )
    row_policy = CustomPolicy(
        rules=(
            ("staff", "SELECT", STAFF, READ, None),
            ("staff_place", "INSERT", STAFF, None, f"({WRITE}) AND placed_by_id = {USER}"),
            ("staff_release", "UPDATE", STAFF, WRITE, f"({WRITE}) AND released_by_id = {USER}"),
        ),
        allow={STAFF: "raw"},
    )

    class Meta:
        verbose_name = "legal hold"
        constraints = [
            models.UniqueConstraint(fields=["workspace", "id"], name="operations_legalhold_key"),
            models.CheckConstraint(
                name="operations_legalhold_four_eyes",
                condition=models.Q(released_by__isnull=True, released_at__isnull=True, release_reason="")
                | (
                    models.Q(released_by__isnull=False, released_at__isnull=False)
                    & ~models.Q(release_reason="")
                    & ~models.Q(released_by=models.F("placed_by"))
                ),
            ),
        ]
        indexes = [models.Index(fields=["-placed_at", "-id"], name="operations_legalhold_newest")]

    def __str__(self) -> str:
        return self.reference


class HoldItem(WorkspaceModel):
    """One held object: its kind (registered in `operations.holds`) and its id."""

    # Bound together with the workspace, by a foreign key in SQL.
    hold: Any = models.ForeignKey(
        LegalHold, on_delete=models.DO_NOTHING, related_name="items", db_constraint=False, db_index=False
    )
    kind = models.CharField(max_length=60)
    object_id = models.UUIDField()
    added_at = models.DateTimeField(db_default=Now(), editable=False)

    retention: ClassVar[str] = "holds: 1826 days after release"
    erasure: ClassVar[str] = "keep: a case of the workspace; items are ids"
    export_columns: ClassVar[tuple[str, ...]] = ("hold", "kind", "object_id", "added_at")
    row_policy = CustomPolicy(
        rules=(
            ("staff", "SELECT", STAFF, READ, None),
            ("staff_add", "INSERT", STAFF, None, WRITE),
        ),
        allow={STAFF: "ra"},
    )

    class Meta:
        verbose_name = "held object"
        constraints = [
            models.UniqueConstraint(fields=["hold", "kind", "object_id"], name="operations_holditem_key")
        ]
        indexes = [models.Index(fields=["kind", "object_id"], name="operations_holditem_object")]
