"""Which certificates are an owner's, and what their erasures have yet to do."""

from typing import Any, ClassVar

from django.db import models
from django.db.models import Q

from apps.core.db.rowpolicy import API, OWN, CustomPolicy
from apps.core.models import OwnedModel

OPEN = Q(completed_at__isnull=True)


class JournalErasure(OwnedModel):
    """An erasure of the journal under the id of its certificate, which names nobody. Written by functions alone."""

    scope = models.CharField(max_length=8, help_text="journal or one")
    observation_id = models.UUIDField(null=True, help_text="The one, until it is gone.")
    withdraw = models.BooleanField(default=False)
    fence_at = models.DateTimeField()
    line_written_at = models.DateTimeField(null=True)
    found: Any = models.JSONField(null=True, help_text="Rows by table when the deletion began.")
    deleted: Any = models.JSONField(default=dict, help_text="Rows by table, moved with each batch.")
    completed_at = models.DateTimeField(null=True)

    row_policy = CustomPolicy(
        rules=(("api", "SELECT", API, f"principal_id = {OWN}", None),), allow={API: "r"}
    )
    retention: ClassVar[str] = "certificates: 1826 days"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = ("id", "scope", "fence_at", "completed_at")

    class Meta(OwnedModel.Meta):
        db_table = "observations_erasure"
        constraints = [
            models.UniqueConstraint(fields=["principal", "id"], name="observations_erasure_owner_key"),
            models.UniqueConstraint(
                fields=["principal"],
                condition=OPEN & Q(scope="journal"),
                name="observations_erasure_running",
            ),
            models.CheckConstraint(
                name="observations_erasure_scope", condition=Q(scope__in=["journal", "one"])
            ),
        ]
        indexes = [
            models.Index(fields=["principal", "-id"], name="observations_erasure_own"),
            models.Index(fields=["id"], name="observations_erasure_open", condition=OPEN),
        ]
