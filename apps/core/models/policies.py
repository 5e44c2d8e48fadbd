"""Stored policies: the numbers by which the platform rules itself, in versions that are only ever added to."""

from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from apps.core.db.rowpolicy import API, STAFF, SUPERUSER, WORKSPACE, CustomPolicy, granted
from apps.core.ids import uuid7

from .audit import OWN_USER
from .base import Declared

READERS = (
    "view_traces",
    "reveal_text",
    "curate",
    "annotate",
    "hold_keys",
    "review_retention",
    "manage_profiles",
    "operate_collection",
    "audit",
)
PUBLISHERS = ("manage_profiles", "review_retention", "operate_collection")


class StoredPolicy(Declared):
    """One version of a policy: of a workspace, or (without one) the default of the installation.

    Append-only. The newest one in effect rules, the workspace's before the default; what was done under a version
    keeps its id. `hash` is SHA-256 over canonical JSON of kind and document, and the version that a change names.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace: Any = models.ForeignKey(
        "accounts.Workspace", null=True, on_delete=models.CASCADE, db_index=False, related_name="+"
    )
    kind = models.CharField(max_length=32)
    version = models.PositiveIntegerField()
    effective_from = models.DateTimeField(db_default=Now())
    document = models.JSONField()
    author: Any = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    reason = models.TextField(blank=True)
    hash = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    retention: ClassVar[str] = "as long as the workspace"
    erasure: ClassVar[str] = "keep: names no principal"
    row_policy = CustomPolicy(
        rules=(
            ("api", "SELECT", API, f"workspace_id = {WORKSPACE} OR workspace_id IS NULL", None),
            ("staff", "SELECT", STAFF, f"({granted(*READERS)}) OR workspace_id IS NULL", None),
            (
                "staff_append",
                "INSERT",
                STAFF,
                None,
                f"author_id = {OWN_USER} AND (({granted(*PUBLISHERS)}) OR workspace_id IS NULL AND {SUPERUSER})",
            ),
        ),
        allow={API: "r", STAFF: "ra"},
    )

    class Meta:
        verbose_name_plural = "stored policies"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "kind", "version"],
                name="core_storedpolicy_version_key",
                nulls_distinct=False,
            )
        ]
        indexes = [
            models.Index(fields=["kind", "workspace", "-effective_from"], name="core_storedpolicy_current")
        ]

    def __str__(self) -> str:
        return f"{self.kind} version {self.version}"
