"""What routes share: canonical answers, strict query strings, ids in paths."""

import re
from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from rest_framework.request import Request

from apps.core import canonical
from apps.core.problems import InvalidRequest

NOBODYS = UUID(int=0)
"""Stands for ids that are none, so that they cost the same look-up."""

_CANONICAL_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_WHOLE = re.compile(r"-?\d{1,9}")


def answer(document: Any, status: int = 200) -> HttpResponse:
    """A canonical answer, so that a repeated one is equal byte for byte."""
    return HttpResponse(canonical.dumps(document), status=status, content_type="application/json")


def query_values(
    request: Request,
    *,
    whole: Collection[str] = (),
    many: Collection[str] = (),
    code: str = "invalid_request",
) -> dict[str, Any]:
    """The query string by name. `whole` are integers, `many` may come more than once, as lists.

    Raises InvalidRequest (with `code`) for another name that comes twice.
    """
    data: dict[str, Any] = {}
    for name, values in request.query_params.lists():
        if name in many:
            data[name] = values
        elif len(values) > 1:
            raise InvalidRequest("This comes once", pointer=f"/{name[:64]}", code=code)
        else:
            value = values[0]
            data[name] = int(value) if name in whole and _WHOLE.fullmatch(value) else value
    return data


def id_of(text: str) -> UUID:
    """The id in a path; what is no id is nobody's."""
    return UUID(text) if _CANONICAL_UUID.fullmatch(text) else NOBODYS
