"""Exports: `export_columns` of the model as CSV or JSON lines, page by page, each page in a session of its own.

Nothing beyond what the row policies show is in it, and no raw text, which the role of staff cannot read at all.
Cells that a spreadsheet would run as a formula are made text by an apostrophe.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Model, QuerySet
from django.http import HttpRequest, StreamingHttpResponse

from apps.core import clock
from apps.core.db.sessions import staff_session
from apps.core.pages import KeysetPage

PAGE = 500
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
FORMATS = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl; charset=utf-8"}


def plain(value: Any) -> Any:
    """A value as JSON writes it: times in RFC 3339, ids as text."""
    if isinstance(value, datetime):
        return clock.iso(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    return value


def cell(value: Any) -> str:
    """A value as a CSV cell, never a formula."""
    value = plain(value)
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if text.startswith(FORMULA_STARTS) and not isinstance(value, int | float):
        return f"'{text}"
    return text


def csv_line(values: list[Any]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow([cell(value) for value in values])
    return out.getvalue()


def export_columns(model: type[Model]) -> tuple[str, ...]:
    """The columns that a model lets out; without a declaration nothing is exported."""
    closed = set(getattr(model, "raw_text", ()))
    return tuple(name for name in getattr(model, "export_columns", ()) if name not in closed)


Query = Callable[[HttpRequest], QuerySet[Any]]


def pages(
    request: HttpRequest, query: Query, keyset: tuple[str, ...], columns: tuple[str, ...]
) -> Iterator[list[Any]]:
    """Lists of rows. `query` is asked anew in each session, so that a grant lost on the way ends the export."""
    cursor: str | None = None
    while True:
        with staff_session(int(request.user.pk or 0)):
            request.__dict__.pop("_granted_workspaces", None)
            page: KeysetPage[Any] = KeysetPage.of(
                query(request),
                limit=PAGE,
                cursor=cursor,
                owner=request.user.pk,
                listing="export",
                order=keyset,
            )
            rows = [[_read(row, name) for name in columns] for row in page.items]
        if rows:
            yield rows
        cursor = page.next_cursor
        if cursor is None:
            return


def _read(row: Model, name: str) -> Any:
    """The stored value; of a relation its key, so that nothing else is fetched."""
    return getattr(row, row._meta.get_field(name).attname if name in _fields(row) else name)  # type: ignore[union-attr]


def _fields(row: Model) -> set[str]:
    return {field.name for field in row._meta.concrete_fields}


def stream(
    request: HttpRequest, *, model: type[Model], query: Query, keyset: tuple[str, ...], kind: str
) -> StreamingHttpResponse:
    """The whole list as a download. Outside of any session; `kind` is a key of `FORMATS`."""
    columns = export_columns(model)

    def lines() -> Iterator[str]:
        if kind == "csv":
            yield csv_line(list(columns))
        for page in pages(request, query, keyset, columns):
            for row in page:
                if kind == "csv":
                    yield csv_line(list(row))
                else:
                    document = {name: plain(value) for name, value in zip(columns, row, strict=True)}
                    yield json.dumps(document, ensure_ascii=False, default=str) + "\n"

    response = StreamingHttpResponse(lines(), content_type=FORMATS[kind])
    name = f"{model._meta.model_name}-{clock.now():%Y%m%dT%H%M%SZ}.{kind}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    response["X-Content-Type-Options"] = "nosniff"
    return response
