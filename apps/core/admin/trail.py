"""An object's audit trail on its page, and the entry that an act has just written."""

from typing import Any
from uuid import UUID

from django.db.models import Model, Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import urlencode

from apps.core import ui
from apps.core.models import AuditEntry

SHOWN = 5


def audit_trail(obj: Model, *related: tuple[str, list[Any]]) -> ui.AuditTrail:
    """The last entries about the object that the user may see, newest first.

    `related`: label and keys of objects that are shown on the same page.
    """
    wanted = Q(object_type=obj._meta.label_lower, object_id=str(obj.pk))
    for label, keys in related:
        wanted |= Q(object_type=label, object_id__in=[str(key) for key in keys])
    found = AuditEntry.objects.filter(wanted).select_related("actor_user").order_by("-id")[:SHOWN]
    return ui.AuditTrail([shown_entry(entry) for entry in found], trail_url(obj))


def trail_url(obj: Model) -> str:
    """The audit trail of the object alone."""
    query = urlencode({"object": str(obj.pk), "window": "all"})
    return f"{reverse('admin:core_auditentry_changelist')}?{query}"


def shown_entry(entry: AuditEntry) -> ui.AuditEntry:
    return ui.AuditEntry(
        at=entry.recorded_at,
        actor=entry.actor,
        action=entry.action,
        reason=entry.reason,
        id=entry.pk,
        href=reverse("admin:core_auditentry_change", args=[entry.pk]),
    )


def own_last_entry(request: HttpRequest) -> UUID | None:
    """The newest entry that the user has written in this request."""
    request_id = str(getattr(request, "id", "") or "")
    rows = AuditEntry.objects.filter(actor_user_id=request.user.pk)
    if request_id:
        rows = rows.filter(request_id=request_id)
    return rows.order_by("-recorded_at", "-id").values_list("pk", flat=True).first()
