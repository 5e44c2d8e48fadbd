"""Routes. The `urls` module of every app is mounted: `urlpatterns` under /v1/, `root_urlpatterns` under /."""

from importlib import import_module
from importlib.util import find_spec

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path, re_path
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerView

from memory_platform.errors import unknown_route

API_APPS = (
    "accounts",
    "operations",
    "graph",
    "sources",
    "retrieval",
    "traces",
    "feedback",
    "learning",
    "observations",
    "search",
)

handler400 = "memory_platform.errors.bad_request"
handler403 = "memory_platform.errors.permission_denied"
handler404 = "memory_platform.errors.page_not_found"
handler500 = "memory_platform.errors.server_error"


def app_routes() -> list[URLPattern | URLResolver]:
    """The routes that the apps bring."""
    found: list[URLPattern | URLResolver] = []
    for app in API_APPS:
        if find_spec(f"apps.{app}.urls") is None:
            continue
        module = import_module(f"apps.{app}.urls")
        found.append(path("v1/", include(module)))
        root = getattr(module, "root_urlpatterns", None)
        if root:
            found.append(path("", include(root)))
    return found


urlpatterns: list[URLPattern | URLResolver] = [
    *app_routes(),
    path("v1/schema", SpectacularJSONAPIView.as_view(), name="schema"),
    path("v1/docs", SpectacularSwaggerView.as_view(url_name="schema"), name="docs"),
    # Last of its prefix: an unknown address of the API is a problem document, with a slash or without.
    re_path(r"^v1(/.*)?$", unknown_route),
    path("admin/", admin.site.urls),
]
