"""Filters as plain fields of one form: they work without a script, and say what is set."""

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, ClassVar

from django.contrib.admin import SimpleListFilter
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest

from apps.core import clock

Choice = tuple[str, str]


class ChoiceFilter(SimpleListFilter):
    """A drop-down over fixed choices of one field. Subclass with `title`, `parameter_name`, `choice_list`."""

    template = "core/filters/choice.html"
    field: ClassVar[str] = ""
    choice_list: ClassVar[Iterable[Choice]] = ()
    any_label: ClassVar[str] = "Any"
    default: ClassVar[str] = ""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[Choice]:
        return list(self.choice_list)

    def has_output(self) -> bool:
        return True

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.chosen()
        known = {str(lookup) for lookup, _ in self.lookup_choices}
        return self.narrow(queryset, value) if value in known else queryset

    def chosen(self) -> str:
        """What holds: the choice, else the default; `all` lifts a default."""
        return self.value() or self.default

    def narrow(self, rows: QuerySet[Any], value: str) -> QuerySet[Any]:
        return rows.filter(**{self.field or str(self.parameter_name): value})

    def choices(self, changelist: Any) -> list[dict[str, Any]]:  # type: ignore[override]
        value = self.chosen()
        nothing = "all" if self.default else ""
        first = {"selected": value in ("", "all"), "value": nothing, "display": self.any_label}
        rest = [
            {"selected": value == str(lookup), "value": lookup, "display": title}
            for lookup, title in self.lookup_choices
        ]
        return [first, *rest]

    def chip(self) -> str:
        value = self.value() or ""
        if value in ("", self.default):
            return ""
        words = {str(lookup): title for lookup, title in self.lookup_choices}.get(value)
        if value == "all" and self.default:
            words = self.any_label.lower()
        return f"{self.title}: {words}" if words else ""


def choice_filter(
    title: str,
    parameter: str,
    choices: Iterable[Choice],
    *,
    field: str = "",
    default: str = "",
    narrow: Callable[..., Any] | None = None,
) -> type[ChoiceFilter]:
    """A `ChoiceFilter` class out of its parts; `narrow(rows, value)` replaces the plain comparison."""
    members: dict[str, Any] = {
        "title": title,
        "parameter_name": parameter,
        "choice_list": tuple(choices),
        "field": field or parameter,
        "default": default,
    }
    if narrow is not None:
        members["narrow"] = staticmethod(narrow)
    return type(f"{parameter.title().replace('_', '')}Filter", (ChoiceFilter,), members)


class WindowFilter(ChoiceFilter):
    """A window of time that ends now, over an indexed time. `default` holds when nothing is chosen."""

    title = "window"
    parameter_name = "window"
    field = "recorded_at"
    windows: ClassVar[dict[str, tuple[str, timedelta | None]]] = {
        "24h": ("last 24 h", timedelta(hours=24)),
        "7d": ("last 7 days", timedelta(days=7)),
        "30d": ("last 30 days", timedelta(days=30)),
        "all": ("all", None),
    }

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[Choice]:
        return [(name, words) for name, (words, _) in self.windows.items()]

    def chosen(self) -> str:
        value = self.value() or ""
        return value if value in self.windows else self.default or "all"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        span = self.windows[self.chosen()][1]
        return queryset if span is None else queryset.filter(**{f"{self.field}__gte": clock.now() - span})

    def choices(self, changelist: Any) -> list[dict[str, Any]]:  # type: ignore[override]
        chosen = self.chosen()
        return [
            {"selected": name == chosen, "value": name, "display": words}
            for name, (words, _) in self.windows.items()
        ]

    def chip(self) -> str:
        chosen = self.chosen()
        return "" if chosen == (self.default or "all") else f"window: {self.windows[chosen][0]}"


class TextFilter(ChoiceFilter):
    """An exact value typed or pasted by the user: an id, a source, a subject."""

    template = "core/filters/text.html"
    hint: ClassVar[str] = ""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[Choice]:
        return [("", "")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = (self.value() or "").strip()
        if not value:
            return queryset
        try:
            return self.narrow(queryset, value)
        except (ValueError, ValidationError):
            return queryset.none()

    def chip(self) -> str:
        value = (self.value() or "").strip()
        return f"{self.title}: {value}" if value else ""


class PrincipalFilter(TextFilter):
    """The owner of the rows, by id."""

    title = "principal"
    parameter_name = "principal"
    field = "principal_id"
    hint = "id"


class DayFilter(TextFilter):
    """One day (UTC) of an indexed time, as `2026-11-30`."""

    title = "day"
    parameter_name = "day"
    template = "core/filters/day.html"

    def narrow(self, rows: QuerySet[Any], value: str) -> QuerySet[Any]:
        day = datetime.combine(date.fromisoformat(value), time(), UTC)
        if day.date() == date.max:
            return rows.none()
        return rows.filter(**{f"{self.field}__gte": day, f"{self.field}__lt": day + timedelta(days=1)})
