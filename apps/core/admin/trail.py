"""An object's audit trail on its page."""

from typing import Any

from django.apps import apps
from django.core.exceptions import FieldDoesNotExist
from django.db.models import Model
from django.urls import NoReverseMatch, reverse
from django.utils.http import urlencode

from apps.core import ui

SHOWN = 5


def audit_trail(obj: Model) -> ui.AuditTrail | None:
    """The last entries about the object that the user may see, newest first; None before there is an audit log."""
    try:
        entries = apps.get_model("core", "AuditEntry")
    except LookupError:
        return None
    found = _entries(entries, obj)
    try:
        base = reverse("admin:core_auditentry_changelist")
    except NoReverseMatch:
        base = ""
    query = urlencode({"object": str(obj.pk)})
    return ui.AuditTrail([_shown(entry) for entry in found], f"{base}?{query}" if base else "")


def _entries(model: Any, obj: Model) -> list[Any]:
    rows = model._default_manager.filter(object_type=obj._meta.label_lower, object_id=str(obj.pk))
    try:
        model._meta.get_field("actor_user")
        rows = rows.select_related("actor_user")
    except FieldDoesNotExist:
        pass
    return list(rows.order_by("-id")[:SHOWN])


def _shown(entry: Any) -> ui.AuditEntry:
    return ui.AuditEntry(
        at=entry.at if hasattr(entry, "at") else entry.recorded_at,
        actor=str(getattr(entry, "actor", "") or "the platform"),
        action=entry.action,
        reason=getattr(entry, "reason", "") or "",
        id=entry.pk,
        href=_page(entry),
    )


def _page(entry: Any) -> str:
    try:
        return reverse("admin:core_auditentry_change", args=[entry.pk])
    except NoReverseMatch:
        return ""
