"""What was exported, without saying whose it was."""

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from apps.core.db.rowpolicy import API, STAFF, CustomPolicy, granted
from apps.core.ids import uuid7
from apps.core.models import Declared

# Of whom copies are outstanding, for the owner's own certificates: a digest, since the row outlives the owner.
OWN_DIGEST = (
    "(SELECT encode(sha256(convert_to('observations.export:' || "
    "nullif(current_setting('memory.principal_id', true), ''), 'UTF8')), 'hex'))"
)
WATCHES = granted("operate_collection", "review_retention", "audit")
ATTESTS = granted("operate_collection", "review_retention")


class Location(models.TextChoices):
    """Where the copy went: to a caller of the API, or into a file of the command."""

    API = "api"
    FILE = "file"


class ExportRecord(Declared):
    """One exported envelope: counts, hashes and dates. The custodian deletes the copy by `latest_expires_at`."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace: Any = models.ForeignKey(
        "accounts.Workspace",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    exported_at = models.DateTimeField(db_default=Now())
    candidates = models.PositiveIntegerField()
    envelope_sha256 = models.CharField(max_length=64)
    earliest_expires_at = models.DateTimeField(null=True)
    latest_expires_at = models.DateTimeField(null=True)
    custodian = models.CharField(max_length=32, default="owner", help_text="Class of who keeps the copy.")
    location = models.CharField(max_length=8, choices=Location.choices)
    owner_digest = models.CharField(max_length=64, help_text="Finds an owner's outstanding copies; no id.")
    attested_at = models.DateTimeField(null=True, help_text="When the deletion of the copy was attested.")
    attested_by: Any = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    row_policy = CustomPolicy(
        rules=(
            ("api", "ALL", API, f"owner_digest = {OWN_DIGEST}", f"owner_digest = {OWN_DIGEST}"),
            ("staff", "SELECT", STAFF, WATCHES, None),
            ("staff_attest", "UPDATE", STAFF, ATTESTS, ATTESTS),
        ),
        allow={API: "ra", STAFF: "rw"},
    )
    retention: ClassVar[str] = "export records: 400 days"
    erasure: ClassVar[str] = "keep: names no principal, and says which copies are outstanding"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "exported_at",
        "candidates",
        "envelope_sha256",
        "earliest_expires_at",
        "latest_expires_at",
        "custodian",
        "location",
        "attested_at",
    )

    class Meta:
        db_table = "observations_export_record"
        verbose_name = "export record"
        indexes = [
            models.Index(fields=["owner_digest"], name="observations_export_owner"),
            models.Index(fields=["exported_at"], name="observations_export_age"),
            models.Index(fields=["workspace", "-exported_at", "-id"], name="observations_export_newest"),
        ]
