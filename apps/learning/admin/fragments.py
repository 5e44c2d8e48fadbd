"""Parts of a page that are loaded after it: a fragment for our script, a page of its own without it."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from apps.core import ui
from apps.core.admin import ModelAdmin
from apps.core.ui import Part


def seen_object(model_admin: ModelAdmin, request: HttpRequest, object_id: Any) -> Any:
    """The object, for a GET of somebody who sees it. Hidden and absent are one answer."""
    obj = model_admin.get_object(request, str(object_id))
    if request.method != "GET" or obj is None or not model_admin.has_view_permission(request, obj):
        raise Http404
    return obj


def fragment(
    model_admin: ModelAdmin, request: HttpRequest, obj: Any, title: str, content: Part | str
) -> HttpResponse:
    """The content alone for our script, which asks with a header of its own; else in the page's frame."""
    if "X-Gov-Dialog" in request.headers:
        response: HttpResponse = HttpResponse(str(content))
    else:
        request.current_app = model_admin.admin_site.name
        section = ui.Section(title=title, anchor="part", content=content)
        context = {
            **model_admin.admin_site.each_context(request),
            "opts": model_admin.opts,
            "title": title,
            "crumbs": [
                {"link": model_admin.url("changelist"), "title": model_admin.list_title()},
                {"link": model_admin.url("change", obj.pk), "title": model_admin.object_title(obj)},
            ],
            "sections": [section],
        }
        response = TemplateResponse(request, "learning/page.html", context)
    response["Cache-Control"] = "no-store"
    return response
