"""Who takes part, and the switch that stops all taking part."""

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from apps.core.db.rowpolicy import API, OWN, STAFF, SUPERUSER, WORKSPACE, CustomPolicy, granted
from apps.core.ids import uuid7
from apps.core.models import Declared, OwnedModel

OPERATES = granted("operate_collection")
WATCHES = granted("operate_collection", "review_retention", "audit")
MINE = f"principal_id = {OWN}"


class Enrolment(OwnedModel):
    """The row of the allow-list that admits one principal. Withdrawn once, never again in force."""

    purpose = models.CharField(max_length=64, help_text="Code of what the records are for.")
    consent_version = models.CharField(max_length=64, help_text="Which wording the principal agreed to.")
    enrolled_by: Any = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    enrolled_at = models.DateTimeField(db_default=Now())
    withdrawn_at = models.DateTimeField(null=True)
    erased_before = models.DateTimeField(
        null=True, help_text="Nothing observed until then can become durable any more."
    )

    row_policy = CustomPolicy(
        rules=(
            ("api", "SELECT", API, MINE, None),
            ("api_withdraw", "UPDATE", API, MINE, MINE),
            ("staff", "SELECT", STAFF, WATCHES, None),
            ("staff_enrol", "INSERT", STAFF, None, OPERATES),
            ("staff_withdraw", "UPDATE", STAFF, OPERATES, OPERATES),
        ),
        allow={API: "rw", STAFF: "raw"},
    )
    retention: ClassVar[str] = "as long as the principal"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "purpose",
        "consent_version",
        "enrolled_at",
        "withdrawn_at",
        "erased_before",
    )

    class Meta(OwnedModel.Meta):
        constraints = [
            *OwnedModel.Meta.constraints,
            models.UniqueConstraint(
                fields=["principal"],
                condition=Q(withdrawn_at__isnull=True),
                name="observations_enrolment_active",
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "-enrolled_at", "-id"], name="observations_enrolment_newest")
        ]


class KillSwitch(Declared):
    """One throw of the stored kill switch: of a workspace, or of the installation where that is null."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace: Any = models.ForeignKey(
        "accounts.Workspace", null=True, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    thrown_at = models.DateTimeField(db_default=Now())
    thrown_by: Any = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    reason = models.TextField()
    released_at = models.DateTimeField(null=True)
    released_by: Any = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    row_policy = CustomPolicy(
        rules=(
            ("api", "SELECT", API, f"workspace_id IS NULL OR workspace_id = {WORKSPACE}", None),
            ("staff", "SELECT", STAFF, f"workspace_id IS NULL OR ({WATCHES})", None),
            (
                "staff_throw",
                "INSERT",
                STAFF,
                None,
                f"({OPERATES}) OR (workspace_id IS NULL AND {SUPERUSER})",
            ),
            (
                "staff_release",
                "UPDATE",
                STAFF,
                f"({OPERATES}) OR (workspace_id IS NULL AND {SUPERUSER})",
                f"({OPERATES}) OR (workspace_id IS NULL AND {SUPERUSER})",
            ),
        ),
        allow={API: "r", STAFF: "raw"},
    )
    retention: ClassVar[str] = "as long as the workspace"
    erasure: ClassVar[str] = "keep: staff, not principals"
    export_columns: ClassVar[tuple[str, ...]] = ("id", "thrown_at", "released_at")

    class Meta:
        db_table = "observations_kill_switch"
        verbose_name = "kill switch"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace"],
                condition=Q(released_at__isnull=True),
                name="observations_kill_switch_on",
                nulls_distinct=False,
            )
        ]
