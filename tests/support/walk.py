"""Walks what the platform declares: routes, models, migrations."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from django.urls import URLPattern, URLResolver, get_resolver
from drf_spectacular.views import SpectacularAPIView

from apps.accounts.api_base import CallerAPIView

METHODS = ("get", "post", "put", "patch", "delete")
PARAMETER = re.compile(r"<(?:(?P<kind>\w+):)?(?P<name>\w+)>")
# Stand-ins of path parameters that are well formed and name nothing.
NOTHING = {"uuid": lambda: str(uuid4()), "int": lambda: "999999", "slug": lambda: "nothing"}


@dataclass(frozen=True)
class Route:
    """One path of the API with one method."""

    path: str
    method: str
    name: str
    view: Any

    def __str__(self) -> str:
        return f"{self.method.upper()} /{self.path}"

    @property
    def parameters(self) -> list[tuple[str, str]]:
        return [(found["kind"] or "str", found["name"]) for found in PARAMETER.finditer(self.path)]

    def address(self, **values: object) -> str:
        """The path with its parameters filled in; those that are not given name nothing."""

        def fill(found: re.Match[str]) -> str:
            if found["name"] in values:
                return str(values[found["name"]])
            return NOTHING.get(found["kind"] or "str", lambda: str(uuid4()))()

        return "/" + PARAMETER.sub(fill, self.path)

    @property
    def scope(self) -> str:
        return str(self.view.scope_of(self.method.upper()))


def patterns(entries: Any = None, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    """Every pattern with its whole path."""
    for entry in get_resolver().url_patterns if entries is None else entries:
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from patterns(entry.url_patterns, path)
        else:
            yield path, entry


def api_views() -> Iterator[tuple[str, URLPattern, Any]]:
    """Views of DRF, which are all routes but pages; those of the schema are the library's."""
    for path, pattern in patterns():
        view = getattr(pattern.callback, "cls", None)
        if view is not None and not issubclass(view, SpectacularAPIView):
            yield path, pattern, view


def routes() -> list[Route]:
    """Every route that needs a credential, once for each method."""
    return [
        Route(path, method, pattern.name or path, view)
        for path, pattern, view in api_views()
        if issubclass(view, CallerAPIView)
        for method in METHODS
        if hasattr(view, method)
    ]
