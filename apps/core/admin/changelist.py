"""Lists read by keyset: any depth costs the same, nothing is counted, nothing is skipped."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.admin.options import IncorrectLookupParameters
from django.core import signing
from django.db.models import F, Model, Q, QuerySet
from django.http import HttpRequest
from django.utils.dateparse import parse_datetime
from unfold.views import ChangeList

from apps.core.admin.estimates import estimated_rows

OLDER, NEWER = "after", "before"
PER_PAGE = 50


class KeysetPaginator:
    """What Django's pagination tags ask of a paginator, without a count."""

    template_name = "core/parts/pager.html"

    def __init__(self, per_page: int) -> None:
        self.per_page = per_page
        self.count = 0
        self.num_pages = 1


def sign(request: HttpRequest, listing: str, order: tuple[str, ...], values: list[Any]) -> str:
    """A cursor of this user, listing and order. Times keep their microseconds."""
    shown = [v.isoformat() if isinstance(v, datetime) else str(v) if isinstance(v, UUID) else v for v in values]
    return signing.dumps(shown, salt=_salt(request, listing, order), compress=True)


def unsign(request: HttpRequest, listing: str, order: tuple[str, ...], cursor: str) -> list[Any]:
    """The values of a cursor. Raises `signing.BadSignature` for a foreign, misplaced or invented one."""
    return list(signing.loads(cursor, salt=_salt(request, listing, order)))


def _salt(request: HttpRequest, listing: str, order: tuple[str, ...]) -> str:
    return f"admin-page:{request.user.pk}:{listing}:{','.join(order)}"


def beyond(order: tuple[str, ...], values: list[Any]) -> Q:
    """Rows that come after the values in the order. The first key is bounded on its own, for its index."""
    condition = Q()
    for at in range(len(order)):
        same = Q(**{name.lstrip("-"): value for name, value in zip(order[:at], values, strict=False)})
        condition |= same & Q(**{_strictly(order[at]): values[at]})
    return Q(**{f"{_strictly(order[0])}e": values[0]}) & condition


def _strictly(name: str) -> str:
    return f"{name[1:]}__lt" if name.startswith("-") else f"{name}__gt"


def reverse_order(order: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name[1:] if name.startswith("-") else f"-{name}" for name in order)


class KeysetChangeList(ChangeList):
    """Pages of `model_admin.keyset`, whose last key is unique. `?after=` goes on, `?before=` goes back."""

    newer_url: str = ""
    older_url: str = ""
    estimate: int | None = None
    exact: bool = False
    lost: bool = False

    def get_filters_params(self, params: dict[str, Any] | None = None) -> dict[str, Any]:
        found: dict[str, Any] = super().get_filters_params(params)
        return {name: value for name, value in found.items() if name not in (OLDER, NEWER)}

    def get_query_string(
        self, new_params: dict[str, Any] | None = None, remove: list[str] | None = None
    ) -> str:
        given = new_params or {}
        gone = [name for name in (OLDER, NEWER) if name not in given]
        return str(super().get_query_string(new_params, [*(remove or []), *gone]))

    def get_queryset(self, request: HttpRequest, exclude_parameters: list[str] | None = None) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        return self.model_admin.list_rows(request, rows)  # type: ignore[no-any-return]

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Model]) -> list[Any]:
        return list(self.order)

    @property
    def order(self) -> tuple[str, ...]:
        return tuple(self.model_admin.keyset)

    def get_results(self, request: HttpRequest) -> None:
        """Fill `result_list` with one page and know whether there is more on either side."""
        self.paginator = KeysetPaginator(self.list_per_page)
        direction, values = self._position(request)
        rows = self._page(direction, values)
        more = len(rows) > self.list_per_page
        rows = rows[: self.list_per_page]
        if direction == NEWER:
            rows.reverse()
        self.result_list = rows
        self.result_count = self.full_result_count = len(rows)
        self.show_full_result_count = False
        self.can_show_all = self.multi_page = False
        self._neighbours(request, direction, more)

    def _position(self, request: HttpRequest) -> tuple[str, list[Any]]:
        for name in (OLDER, NEWER):
            if cursor := request.GET.get(name):
                try:
                    return name, self._typed(unsign(request, self._listing, self.order, cursor))
                except signing.BadSignature:
                    # A cursor from elsewhere is answered as an invented one: with the first page, and said.
                    self.lost = True
        return OLDER, []

    def _typed(self, values: list[Any]) -> list[Any]:
        typed = []
        for name, value in zip(self.order, values, strict=True):
            field = self.opts.get_field(name.lstrip("-"))
            is_time = field.get_internal_type() == "DateTimeField"
            typed.append(parse_datetime(value) if is_time and value else field.to_python(value))
        return typed

    def _page(self, direction: str, values: list[Any]) -> list[Any]:
        order = self.order if direction == OLDER else reverse_order(self.order)
        rows = self.queryset.order_by(*(self._by(name) for name in order))
        if values:
            rows = rows.filter(beyond(order, values))
        return list(rows[: self.list_per_page + 1])

    @staticmethod
    def _by(name: str) -> Any:
        return F(name[1:]).desc() if name.startswith("-") else F(name).asc()

    @property
    def _listing(self) -> str:
        return str(self.opts.label_lower)

    def _neighbours(self, request: HttpRequest, direction: str, more: bool) -> None:
        started = bool({OLDER, NEWER} & set(request.GET)) and not self.lost
        has_older = more if direction == OLDER else True
        has_newer = started if direction == OLDER else more
        if self.result_list:
            if has_older:
                self.older_url = self.get_query_string({OLDER: self._cursor(request, self.result_list[-1])})
            if has_newer:
                self.newer_url = self.get_query_string({NEWER: self._cursor(request, self.result_list[0])})
        self.exact = not self.older_url and not self.newer_url
        if not self.exact:
            self.estimate = estimated_rows(self.queryset)

    def _cursor(self, request: HttpRequest, row: Model) -> str:
        values = [getattr(row, name.lstrip("-")) for name in self.order]
        return sign(request, self._listing, self.order, values)

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


__all__ = ["IncorrectLookupParameters", "KeysetChangeList", "KeysetPaginator", "estimated_rows"]
