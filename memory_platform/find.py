"""Search of the command palette: pages by their name, objects by a pasted id, prefix or hash.

An object that the user may not see is not found; that is the same answer as for one that is not there.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.admin import AdminSite
from django.core.exceptions import FieldDoesNotExist
from django.db.models import Field, Model, Q
from django.http import HttpRequest
from django.urls import reverse

MOST = 20
SHORTEST_HASH = 8
# Columns that hold a hash or number by which people name an object, where a model has them and an index on them.
HANDLES = ("sha256", "hash", "entry_hash", "checksum", "document_hash", "prefix", "source_id")


@dataclass(frozen=True, slots=True)
class Found:
    title: str
    kind: str
    link: str


def find(request: HttpRequest, site: AdminSite, term: str) -> list[Found]:
    """At most 20 results, pages first."""
    return [*_pages(request, term), *_objects(request, site, term)][:MOST]


def _pages(request: HttpRequest, term: str) -> list[Found]:
    from memory_platform.admin_site import navigation

    wanted = term.lower()
    return [
        Found(item["title"], "page", item["link"])
        for group in navigation(request)
        for item in group["items"]
        if wanted in item["title"].lower() and item["permission"](request)
    ]


def _objects(request: HttpRequest, site: AdminSite, term: str) -> list[Found]:
    found: list[Found] = []
    for model, model_admin in site._registry.items():
        condition = _names(model, term)
        if condition is None or not model_admin.has_view_permission(request):
            continue
        for obj in model_admin.get_queryset(request).filter(condition)[:3]:
            meta = model._meta
            link = reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[obj.pk])
            title = getattr(model_admin, "object_title", str)(obj)
            found.append(Found(str(title), str(meta.verbose_name), link))
        if len(found) >= MOST:
            break
    return found


def _names(model: type[Model], term: str) -> Q | None:
    """The condition under which a row of the model is what was pasted; None when it cannot be."""
    parts = []
    key = model._meta.pk
    if key is not None and key.get_internal_type() == "UUIDField" and (value := _uuid(term)):
        parts.append(Q(pk=value))
    for name in HANDLES:
        field = _field(model, name)
        if (
            field is not None
            and len(term) >= SHORTEST_HASH
            and field.get_internal_type() in {"CharField", "TextField"}
        ):
            parts.append(Q(**{name: term}))
    if not parts:
        return None
    condition = parts[0]
    for part in parts[1:]:
        condition |= part
    return condition


def _field(model: type[Model], name: str) -> "Field[Any, Any] | None":
    if name in getattr(model, "raw_text", ()):
        return None
    try:
        field = model._meta.get_field(name)
    except FieldDoesNotExist:
        return None
    return field if isinstance(field, Field) else None


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
