"""Workspaces: made with their shared principal and their five groups."""

from uuid import UUID

from django.contrib.auth.models import Group
from django.db import connection, transaction
from guardian.shortcuts import assign_perm

from apps.accounts.grants import GROUPS
from apps.accounts.models import SHARED_SUBJECT, Principal, Workspace
from apps.accounts.selectors import require_superuser
from apps.core import audit
from apps.core.problems import NotFound


def create_workspace(*, slug: str, name: str) -> Workspace:
    """A workspace with its shared principal and its five groups. In the staff session of a superuser."""
    require_superuser()
    with transaction.atomic():
        workspace = Workspace.objects.create(slug=slug, name=name)
        Principal.objects.create(workspace=workspace, subject=SHARED_SUBJECT, display_name=f"{name}, shared")
        for title, grants in GROUPS.items():
            group = Group.objects.create(name=f"{slug}: {title}")
            for grant in grants:
                assign_perm(f"accounts.{grant}", group, workspace)
        audit.record("accounts.create_workspace", "accounts.workspace", workspace.pk)
    return workspace


def workspace_id(slug: str) -> UUID:
    """The id of a workspace by its slug, outside of any session (commands). Raises NotFound."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT accounts_workspace_id(%s)", [slug])
        found = cursor.fetchone()[0]
    if found is None:
        raise NotFound(code="unknown_workspace")
    return found  # type: ignore[no-any-return]
