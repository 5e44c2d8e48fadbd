"""Which pages there are: found in the registry, so that a new one is walked without being named here."""

from typing import Any

from django.contrib import admin
from django.urls import reverse

from apps.core.db.sessions import staff_session

GALLERY = "/admin/gallery/"
STANDING = [
    "/admin/",
    GALLERY,
    "/admin/password_change/",
    "/admin/desk/labels/",
    "/admin/observations/status/",
]


def lists() -> list[str]:
    """Every list of the registry."""
    found = []
    for model in admin.site._registry:
        meta = model._meta
        found.append(reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist"))
    return sorted(found)


def objects(user: Any) -> list[str]:
    """One object of every list that has one, and the preview of every action on it, as the user sees them."""
    from django.test import RequestFactory

    request = RequestFactory().get("/")
    request.user = user
    request.session = {}  # type: ignore[assignment]
    found: list[str] = []
    with staff_session(user):
        registry: dict[Any, Any] = admin.site._registry
        for model, model_admin in registry.items():
            if not model_admin.has_view_permission(request):
                continue
            meta = model._meta
            obj = model_admin.get_queryset(request).order_by(*model_admin.keyset).first()
            if obj is None:
                continue
            found.append(reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[obj.pk]))
            for action in model_admin.governed:
                if (
                    action.on_object
                    and action.path.count("<") == 1
                    and action.permitted(model_admin, request, obj)
                ):
                    found.append(model_admin.url(action.name, obj.pk))
                elif (
                    not action.on_object
                    and not action.on_selection
                    and action.permitted(model_admin, request, None)
                ):
                    found.append(model_admin.url(action.name))
    return sorted(found)


def every(user: Any) -> list[str]:
    return [*STANDING, *lists(), *objects(user)]
