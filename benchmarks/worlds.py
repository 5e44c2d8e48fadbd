"""Workspaces and principals for benchmarks."""

from typing import Any
from uuid import UUID


def workspace(slug: str) -> UUID:
    """The workspace of that slug, made when absent."""
    from django.contrib.auth.models import User

    from apps.accounts.services import create_workspace, workspace_id
    from apps.core.db.sessions import staff_session
    from apps.core.problems import NotFound

    try:
        return workspace_id(slug)
    except NotFound:
        root = User.objects.filter(is_superuser=True).first()
        root = root or User.objects.create_superuser("benchmark", password="only-for-benchmarks")
        with staff_session(root):
            return UUID(str(create_workspace(slug=slug, name=slug).pk))


def principal(workspace: UUID, subject: str) -> Any:
    """The identity of a subject in a workspace, made when absent."""
    from apps.accounts.services import enter_principal

    return enter_principal(workspace=workspace, subject=subject)
