"""Lists read by keyset: any depth costs the same, nothing is counted, nothing is skipped."""

from collections.abc import Iterator
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from unfold.views import ChangeList

from apps.core.access import current_workspace
from apps.core.admin.estimates import estimated_rows
from apps.core.pages import KeysetPage
from apps.core.problems import UnknownCursor

CURSOR = "cursor"
PER_PAGE = 50
PROBES = 5
PROBE_MS = 250
"""A probe that takes longer says nothing; an empty list must not cost more than a full one."""


class KeysetPaginator:
    """What Django's pagination tags ask of a paginator, without a count."""

    template_name = "core/parts/pager.html"

    def __init__(self, per_page: int) -> None:
        self.per_page = per_page
        self.count = 0
        self.num_pages = 1


class KeysetChangeList(ChangeList):
    """Pages of `model_admin.keyset`, whose last key is unique. `?cursor=` names a page of just these filters."""

    newer_url: str = ""
    older_url: str = ""
    estimate: int | None = None
    exact: bool = False
    lost: bool = False
    hiding: list[dict[str, str]]
    query: str

    def get_filters_params(self, params: dict[str, Any] | None = None) -> dict[str, Any]:
        found: dict[str, Any] = super().get_filters_params(params)
        return {name: value for name, value in found.items() if name != CURSOR}

    def get_query_string(
        self, new_params: dict[str, Any] | None = None, remove: list[str] | None = None
    ) -> str:
        gone = [] if CURSOR in (new_params or {}) else [CURSOR]
        return str(super().get_query_string(new_params, [*(remove or []), *gone]))

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: list[str] | None = None
    ) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        return self.model_admin.list_rows(request, rows)  # type: ignore[no-any-return]

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Model]) -> list[Any]:
        return list(self.model_admin.keyset)

    def get_results(self, request: HttpRequest) -> None:
        """Fill `result_list` with one page and know whether there is more on either side."""
        self.paginator = KeysetPaginator(self.list_per_page)
        try:
            page = self._page(request, request.GET.get(CURSOR))
        except UnknownCursor:
            # A cursor from elsewhere is answered like an invented one: with the first page, and said.
            self.lost = True
            page = self._page(request, None)
        self.model_admin.prepare_rows(request, page.items)
        self.result_list = page.items
        self.result_count = self.full_result_count = len(page.items)
        self.show_full_result_count = False
        self.can_show_all = self.multi_page = False
        if page.next_cursor:
            self.older_url = self.get_query_string({CURSOR: page.next_cursor})
        if page.previous_cursor:
            self.newer_url = self.get_query_string({CURSOR: page.previous_cursor})
        self.hiding = [] if page.items or not self.chips else self._hiding(request)
        self.exact = not self.older_url and not self.newer_url
        if not self.exact:
            # Of a young or changed table the planner may expect fewer than are on the page.
            expected = estimated_rows(self.queryset) or 0
            self.estimate = expected if expected > len(page.items) else None

    def _page(self, request: HttpRequest, cursor: str | None) -> KeysetPage[Any]:
        workspace = current_workspace(request)
        filters = {name: list(values) for name, values in self.filter_params.items() if name != CURSOR}
        return KeysetPage.of(
            self.queryset,
            limit=self.list_per_page,
            cursor=cursor,
            owner=request.user.pk,
            listing=f"admin:{self.opts.label_lower}",
            order=self.model_admin.keyset,
            filters={"filters": filters, "workspace": str(workspace.pk) if workspace else None},
        )

    def _hiding(self, request: HttpRequest) -> list[dict[str, str]]:
        """Filters that alone hide everything: words, and the list without that one. One probe for each."""
        found = []
        for at, (words, url, rows) in enumerate(self._without_each(request)):
            if at < PROBES and _any(rows):
                found.append({"text": words, "url": url})
        return found

    def _without_each(self, request: HttpRequest) -> Iterator[tuple[str, str, QuerySet[Any]]]:
        """The filters that narrow, those set by hand first: words, the list without it and its rows."""
        specs = [(spec, spec.chip() if hasattr(spec, "chip") else "") for spec in self.filter_specs]
        for spec, words in [pair for pair in specs if pair[1]]:
            yield words, self._lifted(spec), self.get_queryset(request, spec.expected_parameters())
        query = str(self.query)
        if query:
            self.query = ""
            rows = self.get_queryset(request)
            self.query = query
            yield f"search: {query}", self.get_query_string(remove=["q"]), rows
        for spec in [spec for spec, words in specs if not words and _defaulted(spec)]:
            yield str(spec.title), self._lifted(spec), self.get_queryset(request, spec.expected_parameters())

    def _lifted(self, spec: Any) -> str:
        """The list without a filter; one that holds by default is lifted by saying so."""
        if _defaulted(spec):
            return self.get_query_string({str(spec.parameter_name): "all"})
        return self.get_query_string(remove=spec.expected_parameters())

    @property
    def chips(self) -> list[dict[str, str]]:
        """Filters that are set: words, and the list without that one."""
        found = []
        for spec in self.filter_specs:
            chip = getattr(spec, "chip", None)
            if chip and (words := chip()):
                found.append({"text": words, "url": self.get_query_string(remove=spec.expected_parameters())})
        if self.query:
            found.append({"text": f"search: {self.query}", "url": self.get_query_string(remove=["q"])})
        return found


def _defaulted(spec: Any) -> bool:
    return bool(getattr(spec, "default", None))


def _any(rows: QuerySet[Any]) -> bool:
    """Whether there is a row, asked within `PROBE_MS`."""
    mark = transaction.savepoint()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(PROBE_MS)])
        return rows.exists()
    except DatabaseError:
        return False
    finally:
        # Takes the timeout back, too.
        transaction.savepoint_rollback(mark)
