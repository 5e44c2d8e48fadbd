"""The audit log: one chain of entries a workspace, and one for the installation.

The law of these tables: no runtime role writes them. Entries are appended by a function of the database that
takes the actor from the session; the oldest are pruned by another, which keeps the last hash as anchor.
"""

from typing import Any, ClassVar

from django.conf import settings
from django.db import models

from apps.core.db.rowpolicy import STAFF, SUPERUSER, CustomPolicy, granted
from apps.core.ids import uuid7

from .base import Declared

DAYS_KEPT = 1826
"""Five years; `core_audit_prune` deletes nothing younger, whatever it is asked."""

OWN_USER = "(SELECT nullif(current_setting('memory.user_id', true), '')::int)"
# The installation's chain belongs to no workspace, so no grant can name it.
READ = f"({granted('audit')}) OR (workspace_id IS NULL AND {SUPERUSER})"


def _workspace() -> Any:
    # No key in the database: the log outlives the workspace that it speaks of.
    return models.ForeignKey(
        "accounts.Workspace",
        null=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )


class AuditChain(Declared):
    """The head of a chain, the anchor left by pruning, and how far it was last found whole."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace: Any = _workspace()
    last_sequence = models.BigIntegerField(default=0)
    last_hash = models.CharField(max_length=64, default="")
    anchor_sequence = models.BigIntegerField(default=0)
    anchor_hash = models.CharField(max_length=64, default="")
    verified_sequence = models.BigIntegerField(null=True)
    verified_at = models.DateTimeField(null=True)
    broken_sequence = models.BigIntegerField(null=True)

    retention: ClassVar[str] = "as long as its entries"
    erasure: ClassVar[str] = "keep: names no principal"
    row_policy = CustomPolicy(rules=(("staff", "SELECT", STAFF, READ, None),), allow={STAFF: "r"})

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace"], name="core_auditchain_workspace_key", nulls_distinct=False
            )
        ]


class AuditEntry(Declared):
    """Who did what to which object, when and why. Objects are named and hashed, never copied.

    `principal_id` is whom the actor acted as, or on whose rows staff acted. It stays after an erasure: it names
    nobody by then.
    """

    class Actor(models.TextChoices):
        STAFF = "staff", "staff"
        PRINCIPAL = "principal", "a principal"
        PLATFORM = "platform", "the platform"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace: Any = _workspace()
    sequence = models.BigIntegerField()
    recorded_at = models.DateTimeField()
    actor_kind = models.CharField(max_length=16, choices=Actor.choices)
    actor_user: Any = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    principal_id = models.UUIDField(null=True)
    action = models.CharField(max_length=100)
    object_type = models.CharField(max_length=100)
    object_id = models.CharField(max_length=128)
    reason = models.TextField(blank=True)
    before_sha256 = models.CharField(max_length=64, null=True)
    after_sha256 = models.CharField(max_length=64, null=True)
    details = models.JSONField(default=dict)
    request_id = models.CharField(max_length=64, blank=True)
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64)

    retention: ClassVar[str] = "audit: 1826 days"
    erasure: ClassVar[str] = "keep: who, what and when, without text"
    # Everyone on the staff sees what they did themselves; the rest needs the grant.
    row_policy = CustomPolicy(
        rules=(("staff", "SELECT", STAFF, f"{READ} OR actor_user_id = {OWN_USER}", None),),
        allow={STAFF: "r"},
    )

    class Meta:
        verbose_name_plural = "audit entries"
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "sequence"], name="core_auditentry_sequence_key", nulls_distinct=False
            )
        ]
        indexes = [
            models.Index(fields=["workspace", "-recorded_at", "-id"], name="core_auditentry_newest"),
            models.Index(fields=["-recorded_at", "-id"], name="core_auditentry_newest_of_all"),
            models.Index(fields=["object_type", "object_id", "-id"], name="core_auditentry_object"),
            models.Index(fields=["actor_user", "-recorded_at", "-id"], name="core_auditentry_actor"),
            models.Index(
                fields=["request_id"], name="core_auditentry_request", condition=~models.Q(request_id="")
            ),
        ]

    @property
    def actor(self) -> str:
        """The actor in words: a user's name, a principal's id, or the platform."""
        if self.actor_kind == self.Actor.STAFF:
            return str(self.actor_user) if self.actor_user else f"user {self.actor_user_id}, gone"
        if self.actor_kind == self.Actor.PRINCIPAL:
            return f"principal {self.principal_id}"
        return str(self.Actor.PLATFORM.label)
