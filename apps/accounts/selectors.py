"""Reads of accounts: what the user of a staff session holds, principals and tokens without their secrets."""

from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from apps.accounts.models import ApiToken, Principal
from apps.core.db.sessions import current_staff
from apps.core.problems import Forbidden, NotFound


def granted_workspaces(*grants: str) -> set[UUID]:
    """Ids of the workspaces on which the session's staff user holds one of the grants."""
    current_staff()
    with connection.cursor() as cursor:
        cursor.execute("SELECT accounts_granted_workspaces(%s::text[])", [list(grants)])
        return set(cursor.fetchone()[0])


def holds(workspace: UUID, *grants: str) -> bool:
    return workspace in granted_workspaces(*grants)


def is_superuser() -> bool:
    """Whether the session's staff user manages accounts as a superuser."""
    current_staff()
    with connection.cursor() as cursor:
        cursor.execute("SELECT accounts_is_superuser()")
        return bool(cursor.fetchone()[0])


def require_superuser() -> None:
    """Raises Forbidden."""
    if not is_superuser():
        raise Forbidden("Only a superuser manages this.")


def require_operator(workspace: UUID) -> None:
    """Principals and tokens: operators of the workspace, and superusers. Raises Forbidden."""
    if not (is_superuser() or holds(workspace, "operate_collection")):
        raise Forbidden("This needs the grant operate_collection on the workspace.")


def principals() -> QuerySet[Principal]:
    """Principals that the session may see, without their keys."""
    return Principal.objects.defer("hash_key")


def tokens() -> QuerySet[ApiToken]:
    """Tokens that the session may see, newest first, without their digests."""
    return ApiToken.objects.defer("secret_sha256").order_by("-created_at", "-id")


def get_principal(principal_id: UUID) -> Principal:
    """Raises NotFound, also for one of a workspace without a grant."""
    found = principals().filter(pk=principal_id).first()
    if found is None:
        raise NotFound(code="unknown_principal")
    return found


def get_token(token_id: UUID) -> ApiToken:
    """Raises NotFound, also for one that the session may not see."""
    found = tokens().filter(pk=token_id).first()
    if found is None:
        raise NotFound(code="unknown_token")
    return found
