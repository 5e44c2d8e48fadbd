"""Certificates, what an erasure has yet to do, and the list of tables that it touches."""

from typing import Any, ClassVar

from django.db import models

from apps.core.db.rowpolicy import APP, STAFF, CustomPolicy, Unowned, granted
from apps.core.ids import uuid7
from apps.core.models import Declared

CERTIFICATE_VERSION = 1
READ = granted("review_retention", "audit")


class ErasureScope(models.TextChoices):
    """`all`: everything of a principal. `journal`, `one`: its observations, or one object of it."""

    ALL = "all"
    JOURNAL = "journal"
    ONE = "one"


class ErasureStatus(models.TextChoices):
    RUNNING = "running"
    INCOMPLETE = "incomplete"
    COMPLETE = "complete"


class ErasureActor(models.TextChoices):
    """Who asked: the owner, staff for the owner, or the replay of the erasure file after a restore."""

    OWNER = "owner"
    STAFF = "staff"
    REPLAY = "replay"


class ErasureCertificate(Declared):
    """What was erased, in counts. Names nobody, outlives the data, and is read without a credential."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace: Any = models.ForeignKey(
        "accounts.Workspace",
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    version = models.PositiveSmallIntegerField(default=CERTIFICATE_VERSION)
    scope = models.CharField(max_length=8, choices=ErasureScope.choices, default=ErasureScope.ALL)
    actor = models.CharField(max_length=8, choices=ErasureActor.choices)
    status = models.CharField(max_length=10, choices=ErasureStatus.choices, default=ErasureStatus.RUNNING)
    reason_code = models.CharField(max_length=40, blank=True, help_text="Why it is incomplete.")
    requested_at = models.DateTimeField()
    fence_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True)
    tables: Any = models.JSONField(default=list, help_text="Per table: found, deleted, remaining.")
    export_copies: Any = models.JSONField(
        default=list, help_text="Outstanding copies: expires_at and custodian class."
    )
    backup_days = models.PositiveIntegerField(null=True, help_text="Declared horizon of backups.")
    audit_entry_id = models.UUIDField(null=True)
    checksum = models.CharField(max_length=64, blank=True)

    retention: ClassVar[str] = "certificates: 1826 days"
    erasure: ClassVar[str] = "keep: names no principal, and proves the erasure"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "scope",
        "actor",
        "status",
        "reason_code",
        "requested_at",
        "fence_at",
        "completed_at",
        "checksum",
    )
    row_policy = CustomPolicy(
        rules=(
            ("app", "ALL", APP, "true", "true"),
            ("staff", "SELECT", STAFF, READ, None),
        ),
        allow={APP: "rw", STAFF: "r"},
    )

    class Meta:
        verbose_name = "erasure certificate"
        indexes = [
            models.Index(fields=["workspace", "-requested_at", "-id"], name="operations_erasure_newest"),
            models.Index(
                fields=["status"],
                name="operations_erasure_open",
                condition=~models.Q(status="complete"),
            ),
        ]


class ErasureRun(Declared):
    """Whose rows an open erasure deletes. Gone when its certificate is complete."""

    certificate: Any = models.OneToOneField(
        ErasureCertificate, primary_key=True, on_delete=models.CASCADE, related_name="+"
    )
    workspace_id = models.UUIDField()
    principal_id = models.UUIDField(unique=True)
    shared_principal_id = models.UUIDField(null=True)
    line_written_at = models.DateTimeField(null=True)
    found: Any = models.JSONField(null=True, help_text="Rows by table when the deletion began.")
    deleted: Any = models.JSONField(default=dict, help_text="Rows by table, moved with each batch.")
    attempts = models.PositiveIntegerField(default=0)

    retention: ClassVar[str] = "until its certificate is complete"
    erasure: ClassVar[str] = "keep: it is the erasure, and goes with its end"
    row_policy = Unowned("what an open erasure has yet to do: ids, which the worker must find", app="rwd")

    class Meta:
        verbose_name = "erasure run"


class ErasableTable(Declared):
    """One table of the registry, written by the owner after each migrate. The deleting functions trust no other."""

    name = models.CharField(max_length=63, primary_key=True)
    label = models.CharField(max_length=100, help_text="The model, which is also a kind of holds.")
    owner_column = models.CharField(max_length=63)
    key_column = models.CharField(max_length=63, blank=True, help_text="Its uuid key, where it has one.")
    rule = models.CharField(max_length=7, help_text="delete or cascade")
    position = models.PositiveIntegerField(help_text="Order of deletion.")

    retention: ClassVar[str] = "as long as the table"
    erasure: ClassVar[str] = "keep: names no principal"
    row_policy = Unowned("names of tables, for the functions of the owner alone")

    class Meta:
        verbose_name = "erasable table"
