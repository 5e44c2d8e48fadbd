"""Workspaces, the principals inside them, their credentials, and what staff may do."""

import secrets
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import models
from django.db.models.functions import Now
from guardian.models import GroupObjectPermissionBase, UserObjectPermissionBase

from apps.accounts.grants import GRANTS
from apps.core.db.rowpolicy import OWN, SHARED, SUPERUSER, WORKSPACE, CustomPolicy, Unowned, granted
from apps.core.ids import uuid7
from apps.core.models import Declared

SHARED_SUBJECT = "shared"
ANY_GRANT = granted(*GRANTS)
OWN_BEARER = "user_id = (SELECT nullif(current_setting('memory.user_id', true), '')::int)"
OPERATES = f"({granted('operate_collection')}) OR {SUPERUSER}"


class Workspace(Declared):
    """The governed application or customer. Staff hold their grants on it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    slug = models.SlugField(max_length=63, unique=True, validators=[RegexValidator(r"^[a-z0-9][a-z0-9-]*$")])
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    retention: ClassVar[str] = "until deleted by a superuser"
    erasure: ClassVar[str] = "keep: names no person"
    export_columns: ClassVar[tuple[str, ...]] = ("id", "slug", "name", "created_at")
    row_policy = CustomPolicy(
        rules=(
            ("api", "SELECT", "memory_api", f"id = {WORKSPACE}", None),
            ("staff", "SELECT", "memory_staff", ANY_GRANT.replace("workspace_id", "id", 1), None),
            ("superuser", "ALL", "memory_staff", SUPERUSER, SUPERUSER),
        ),
        allow={"memory_api": "r", "memory_staff": "rawd"},
    )

    class Meta:
        permissions = list(GRANTS.items())
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.name


class WorkspaceUserGrant(UserObjectPermissionBase):
    """A grant of one staff user on one workspace."""

    content_object = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    row_policy = Unowned("grants of staff, read by guardian", app="r", staff="rawd")
    retention: ClassVar[str] = "as long as the workspace"
    erasure: ClassVar[str] = "keep: staff, not principals"

    class Meta(UserObjectPermissionBase.Meta):
        abstract = False


class WorkspaceGroupGrant(GroupObjectPermissionBase):
    """A grant of one group of staff on one workspace."""

    content_object = models.ForeignKey(Workspace, on_delete=models.CASCADE)
    row_policy = Unowned("grants of groups, read by guardian", app="r", staff="rawd")
    retention: ClassVar[str] = "as long as the workspace"
    erasure: ClassVar[str] = "keep: staff, not principals"

    class Meta(GroupObjectPermissionBase.Meta):
        abstract = False


def new_hash_key() -> bytes:
    return secrets.token_bytes(32)


class Principal(Declared):
    """The owner of private data: one verified identity inside one workspace.

    Subject `shared` is the workspace's shared principal: every principal of the workspace reads what it owns.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace: Any = models.ForeignKey(Workspace, on_delete=models.PROTECT, related_name="+")
    subject = models.CharField(max_length=512, help_text="e.g. github:123, oidc:…#sub, token:…")
    display_name = models.CharField(max_length=200, blank=True)
    hash_key = models.BinaryField(default=new_hash_key, editable=False, max_length=32)
    disabled_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    retention: ClassVar[str] = "until erased"
    erasure: ClassVar[str] = "delete"
    export_columns: ClassVar[tuple[str, ...]] = ("id", "subject", "display_name", "disabled_at", "created_at")
    # Keyed hashes lose their meaning for whoever holds the key, so staff cannot read it.
    raw_text: ClassVar[tuple[str, ...]] = ("hash_key",)
    row_policy = CustomPolicy(
        rules=(
            ("api", "SELECT", "memory_api", f"id IN ({OWN}, {SHARED})", None),
            ("api_erase", "DELETE", "memory_api", f"id = {OWN} AND subject <> 'shared'", None),
            ("staff", "SELECT", "memory_staff", f"({ANY_GRANT}) OR {SUPERUSER}", None),
            ("staff_add", "INSERT", "memory_staff", None, OPERATES),
            ("staff_change", "UPDATE", "memory_staff", OPERATES, OPERATES),
        ),
        allow={"memory_api": "rd", "memory_staff": "raw"},
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "subject"], name="accounts_principal_subject"),
            models.UniqueConstraint(fields=["workspace", "id"], name="accounts_principal_workspace_key"),
        ]

    def __str__(self) -> str:
        return self.display_name or self.subject


class ApiToken(Declared):
    """A bearer credential of one principal or one staff user. Only its SHA-256 is kept."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace: Any = models.ForeignKey(
        Workspace, null=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="+"
    )
    principal: Any = models.ForeignKey(
        Principal, null=True, blank=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="+"
    )
    user: Any = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12, editable=False)
    secret_sha256 = models.BinaryField(unique=True, editable=False)
    scopes = ArrayField(models.CharField(max_length=16), default=list, blank=True)
    speaks_for_user = models.BooleanField(
        default=False, help_text="Claims written with this token carry the user's authority."
    )
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    retention: ClassVar[str] = "as long as the principal or user"
    erasure: ClassVar[str] = "cascade"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "name",
        "prefix",
        "scopes",
        "expires_at",
        "last_used_at",
        "revoked_at",
    )
    raw_text: ClassVar[tuple[str, ...]] = ("secret_sha256",)
    row_policy = CustomPolicy(
        rules=(
            ("api", "SELECT", "memory_api", f"principal_id = {OWN}", None),
            (
                "staff",
                "ALL",
                "memory_staff",
                f"({OPERATES}) OR {OWN_BEARER}",
                f"({OPERATES}) OR {OWN_BEARER}",
            ),
        ),
        allow={"memory_api": "r", "memory_staff": "raw"},
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="accounts_apitoken_one_bearer",
                condition=models.Q(principal__isnull=False, workspace__isnull=False, user__isnull=True)
                | models.Q(principal__isnull=True, workspace__isnull=True, user__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class TrustedIssuer(Declared):
    """An issuer whose JWTs a workspace accepts; the subject claim names the principal."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    workspace: Any = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+")
    iss = models.CharField(max_length=512)
    audience = models.CharField(max_length=512)
    jwks_url = models.URLField(max_length=512, blank=True)
    pinned_keys = models.JSONField(default=list, blank=True, help_text="Public keys as JWKs.")
    subject_claim = models.CharField(max_length=64, default="sub")
    subject_prefix = models.CharField(max_length=64, help_text="Put before the claim, e.g. oidc:login#")
    algorithms = ArrayField(models.CharField(max_length=16), default=list)
    scopes = ArrayField(
        models.CharField(max_length=16), default=list, help_text="The most that a JWT of this issuer may do."
    )
    scope_claim = models.CharField(
        max_length=64,
        blank=True,
        help_text="Claim that narrows the scopes; blank: every JWT has all of them.",
    )
    speaks_for_user = models.BooleanField(
        default=False, help_text="Claims written with its JWTs carry the user's authority."
    )
    active = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    retention: ClassVar[str] = "as long as the workspace"
    erasure: ClassVar[str] = "keep: names no principal"
    export_columns: ClassVar[tuple[str, ...]] = (
        "id",
        "iss",
        "audience",
        "jwks_url",
        "subject_claim",
        "algorithms",
        "scopes",
        "active",
    )
    row_policy = CustomPolicy(
        rules=(
            ("staff", "SELECT", "memory_staff", granted("operate_collection", "audit"), None),
            ("superuser", "ALL", "memory_staff", SUPERUSER, SUPERUSER),
        ),
        allow={"memory_staff": "rawd"},
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "iss", "audience"], name="accounts_trustedissuer_key"
            ),
            # A JWT says nothing of workspaces, so that what it names must lead to one.
            models.UniqueConstraint(
                fields=["iss", "audience"],
                condition=models.Q(active=True),
                name="accounts_trustedissuer_one_workspace",
            ),
            models.CheckConstraint(
                name="accounts_trustedissuer_safe_algorithms",
                condition=~models.Q(algorithms__overlap=["none", "HS256", "HS384", "HS512"]),
            ),
        ]

    def __str__(self) -> str:
        return self.iss
