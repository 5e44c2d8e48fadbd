"""Tables by what was lost, page by page: a page begins after a row that is named by its key, so no row is skipped."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from apps.core import ui

A_PAGE = 200


def page_after(rows: QuerySet[Any, Any], key: str, after: str) -> list[Any]:
    """At most a page and one of rows that have a `change` and are ordered by it and `key`."""
    last = None
    if after:
        try:
            last = rows.filter(**{key: after}).values_list("change", key).first()
        except (ValueError, ValidationError):
            last = None
    if last is not None:
        rows = rows.filter(Q(change__gt=last[0]) | Q(change=last[0], **{f"{key}__gt": last[1]}))
    return list(rows[: A_PAGE + 1])


def further(request: HttpRequest, found: list[Any], key: str) -> tuple[list[Any], str]:
    """The rows of a page, and the query of the next one; empty at the end."""
    shown = found[:A_PAGE]
    if len(found) <= A_PAGE:
        return shown, ""
    last = shown[-1]
    value = last[key] if isinstance(last, dict) else getattr(last, key)
    return shown, urlencode({**request.GET.dict(), "after": value})


def framed(
    request: HttpRequest, table: ui.Records, sorts: list[tuple[str, str]], sort: str, older: str
) -> SafeString:
    """A table with the ways to sort it (name, words) above, and its pages below."""
    links = format_html_join(
        " ",
        '<a href="?sort={}"{}>{}</a>',
        ((name, SafeString(' aria-current="true"') if name == sort else "", words) for name, words in sorts),
    )
    nav = format_html('<nav class="gv-subnav" aria-label="Sorted">{}</nav>', links) if sorts else ""
    first = request.GET.get("after", "")
    if not (first or older):
        return format_html("{}{}", nav, table)
    return format_html(
        '{}{}<nav class="gv-pager" aria-label="Pages of the table"><span>{}</span><span>{}</span></nav>',
        nav,
        table,
        format_html('<a class="gv-button small" href="?sort={}">← First</a>', sort) if first else "",
        format_html('<a class="gv-button small" href="?{}">Further →</a>', older) if older else "",
    )
