"""Who among the staff may do what on a workspace. Superusers manage that; granting oneself shows as such."""

from django.contrib.auth.models import Group, User
from guardian.shortcuts import assign_perm, remove_perm

from apps.accounts import selectors
from apps.accounts.grants import GRANTS, GROUPS
from apps.accounts.models import Workspace
from apps.core import audit
from apps.core.db.sessions import current_staff
from apps.core.problems import InvalidRequest


def give_grant(*, user: User, workspace: Workspace, grant: str, reason: str) -> None:
    """One grant to one person. Idempotent, audited each time."""
    _check(user, grant)
    assign_perm(f"accounts.{grant}", user, workspace)
    _record(_giving(user), user, workspace, reason, grant=grant)


def take_grant(*, user: User, workspace: Workspace, grant: str, reason: str) -> None:
    _check(user, grant)
    remove_perm(f"accounts.{grant}", user, workspace)
    _record("accounts.take_grant", user, workspace, reason, grant=grant)


def join_group(*, user: User, workspace: Workspace, title: str, reason: str) -> None:
    """Into one of the ready-made groups of a workspace, by its title (`Auditor`, …)."""
    user.groups.add(_group(user, workspace, title))
    _record(_giving(user), user, workspace, reason, group=title)


def leave_group(*, user: User, workspace: Workspace, title: str, reason: str) -> None:
    user.groups.remove(_group(user, workspace, title))
    _record("accounts.take_grant", user, workspace, reason, group=title)


def _check(user: User, grant: str) -> None:
    selectors.require_superuser()
    if grant not in GRANTS:
        raise InvalidRequest(f"Grants are {', '.join(GRANTS)}.", pointer="/grant")
    if not user.is_staff:
        raise InvalidRequest("Only staff hold grants.", pointer="/user")


def _group(user: User, workspace: Workspace, title: str) -> Group:
    selectors.require_superuser()
    if title not in GROUPS:
        raise InvalidRequest(f"Groups are {', '.join(GROUPS)}.", pointer="/group")
    if not user.is_staff:
        raise InvalidRequest("Only staff join groups.", pointer="/user")
    return Group.objects.get(name=f"{workspace.slug}: {title}")


def _giving(user: User) -> str:
    return "accounts.grant_self" if user.pk == current_staff().user_id else "accounts.give_grant"


def _record(action: str, user: User, workspace: Workspace, reason: str, **details: str) -> None:
    audit.record(
        action,
        "accounts.workspace",
        workspace.pk,
        workspace=workspace.pk,
        reason=reason,
        details={"user": user.pk, **details},
    )
