"""What the signed-in staff user may see: grants by workspace, and the workspace that lists are narrowed to.

The database's row policies decide; this asks the same function as they do, so that a button is not shown where
the service would refuse.
"""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db import connection, models
from django.http import HttpRequest

from apps.core.db.identity import StaffIdentity
from apps.core.db.sessions import current
from apps.core.models.policies import READERS

SESSION_KEY = "current_workspace"


def workspaces_with(request: HttpRequest, *grants: str) -> frozenset[UUID]:
    """Ids of the workspaces on which the user holds any of the grants. Empty outside of a staff session."""
    if not isinstance(current(), StaffIdentity) or not grants:
        return frozenset()
    held: dict[str, frozenset[UUID]] | None = request.__dict__.get("_granted_workspaces")
    if held is None:
        held = request.__dict__["_granted_workspaces"] = _held()
    return frozenset().union(*(held.get(grant, frozenset()) for grant in grants))


def _held() -> dict[str, frozenset[UUID]]:
    """All that the session's user holds, by grant, in one round trip."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT held, accounts_granted_workspaces(ARRAY[held]) FROM unnest(%s::text[]) held",
            [list(READERS)],
        )
        return {grant: frozenset(workspaces or ()) for grant, workspaces in cursor.fetchall()}


def holds(request: HttpRequest, obj: models.Model, *grants: str) -> bool:
    """Whether the user holds one of the grants on the workspace of `obj`."""
    return workspace_of(obj) in workspaces_with(request, *grants)


def is_superuser(request: HttpRequest) -> bool:
    """Whether a superuser asks: one manages accounts, and sees no data by that."""
    return bool(getattr(request.user, "is_superuser", False) and request.user.is_active)


def workspace_of(obj: models.Model) -> UUID | None:
    """The workspace a row belongs to; a workspace belongs to itself."""
    if obj._meta.label == "accounts.Workspace":
        return obj.pk  # type: ignore[no-any-return]
    return getattr(obj, "workspace_id", None)


def workspace_choices(request: HttpRequest) -> list[Any]:
    """Workspaces that the user sees, by name."""
    if not isinstance(current(), StaffIdentity):
        return []
    if "_workspace_choices" not in request.__dict__:
        manager = apps.get_model("accounts", "Workspace")._default_manager
        request.__dict__["_workspace_choices"] = list(manager.order_by("name", "id"))
    return request.__dict__["_workspace_choices"]  # type: ignore[no-any-return]


def current_workspace(request: HttpRequest) -> Any | None:
    """The workspace that the user has chosen, if it is still one that it sees; None means all of them."""
    chosen = request.session.get(SESSION_KEY) if hasattr(request, "session") else None
    if not chosen:
        return None
    return next((found for found in workspace_choices(request) if str(found.pk) == chosen), None)


def choose_workspace(request: HttpRequest, slug: str) -> Any | None:
    """Remember the workspace in the user's session; an empty or unknown slug forgets it."""
    found = next((w for w in workspace_choices(request) if w.slug == slug), None)
    if found is None:
        request.session.pop(SESSION_KEY, None)
    else:
        request.session[SESSION_KEY] = str(found.pk)
    return found


def narrow(
    request: HttpRequest, rows: models.QuerySet[Any], grants: Iterable[str], *, everything: bool = False
) -> models.QuerySet[Any]:
    """Rows of the current workspace, else of all granted ones.

    Row policies hide the others anyway; naming the workspaces lets the planner estimate and use the index.
    `everything` leaves rows without a workspace in (superusers, defaults).
    """
    workspace = current_workspace(request)
    if not any(field.name == "workspace" for field in rows.model._meta.fields):
        return rows
    if workspace is not None:
        return rows.filter(workspace_id=workspace.pk)
    granted = workspaces_with(request, *grants)
    return rows if everything or not granted else rows.filter(workspace_id__in=granted)
