"""All writes of accounts."""

import secrets
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import Group
from django.db import connection, transaction
from guardian.shortcuts import assign_perm

from apps.accounts.caller import SCOPES
from apps.accounts.credentials import secret_digest
from apps.accounts.grants import GROUPS
from apps.accounts.models import SHARED_SUBJECT, ApiToken, Principal, Workspace, new_hash_key
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import current_staff
from apps.core.ids import uuid7
from apps.core.problems import InvalidRequest, NotFound

TOKEN_PREFIX = "mp_"


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token with its secret, which is known here and never again."""

    token: ApiToken
    secret: str


def create_workspace(*, slug: str, name: str) -> Workspace:
    """A workspace with its shared principal and its five groups. In the staff session of a superuser."""
    current_staff()
    with transaction.atomic():
        workspace = Workspace.objects.create(slug=slug, name=name)
        Principal.objects.create(workspace=workspace, subject=SHARED_SUBJECT, display_name=f"{name}, shared")
        for title, grants in GROUPS.items():
            group = Group.objects.create(name=f"{slug}: {title}")
            for grant in grants:
                assign_perm(f"accounts.{grant}", group, workspace)
    return workspace


def workspace_id(slug: str) -> UUID:
    """The id of a workspace by its slug, outside of any session (commands). Raises NotFound."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT accounts_workspace_id(%s)", [slug])
        found = cursor.fetchone()[0]
    if found is None:
        raise NotFound(code="unknown_workspace")
    return found  # type: ignore[no-any-return]


def enter_principal(*, workspace: UUID, subject: str) -> PrincipalIdentity:
    """The identity of a subject, made at first sight; outside of any session. Raises NotFound when disabled."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT principal_id, workspace_id, shared_principal_id FROM accounts_enter_principal(%s, %s, %s, %s)",
            [workspace, subject, uuid7(), new_hash_key()],
        )
        row = cursor.fetchone()
    if row is None:
        raise NotFound(code="unknown_principal")
    return PrincipalIdentity(*row)


def create_token(
    *,
    name: str,
    scopes: list[str],
    principal: Principal | None = None,
    user_id: int | None = None,
    expires_at: datetime | None = None,
    speaks_for_user: bool = False,
) -> NewToken:
    """A token of a principal, or of a staff user; in a staff session that may write it."""
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown:
        raise InvalidRequest(f"Scopes are {', '.join(SCOPES)}.", pointer="/scopes")
    secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        workspace_id=principal.workspace_id if principal else None,
        principal=principal,
        user_id=user_id,
        name=name,
        prefix=secret[:8],
        secret_sha256=secret_digest(secret),
        scopes=sorted(set(scopes)),
        speaks_for_user=speaks_for_user,
        expires_at=expires_at,
    )
    return NewToken(token, secret)
