"""Every error of an API view as a problem document.

Words of frameworks, drivers and validators are not passed on: they repeat what was sent, or say how it is
stored. What is neither a problem nor a known exception stays an error of the server.
"""

import math
from collections.abc import Iterator
from typing import Any

import psycopg
import structlog
from django.core.exceptions import (
    BadRequest,
    ObjectDoesNotExist,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpResponse
from django.http.request import UnreadablePostError
from rest_framework import exceptions
from rest_framework.views import set_rollback

from apps.core import problems
from apps.core.problems import Problem, problem_response
from apps.core.schemas import MAX_FAILURES, pointer

log = structlog.get_logger(__name__)

_FIELD_DETAILS = {
    "required": "This field is needed",
    "null": "This field may not be null",
    "blank": "The text is blank",
    "empty": "The list is empty",
    "invalid_choice": "This is none of the choices",
    "max_length": "This is too long",
    "min_length": "This is too short",
    "max_value": "This is too large",
    "min_value": "This is too small",
    "not_a_list": "This is not a list",
    "not_a_dict": "This is not an object",
    "unique": "This is taken",
    "does_not_exist": "This does not exist",
}


def exception_handler(exc: Exception, context: dict[str, Any]) -> HttpResponse | None:
    """DRF's EXCEPTION_HANDLER. The transaction is rolled back; None leaves the error to Django."""
    problem = problem_of(exc)
    if problem is None:
        return None
    if not _opens_its_own(context):
        set_rollback()
    if problem.status >= 500:
        log.error("request_failed", code=problem.shown_code, error=type(exc).__name__)
    return problem_response(problem)


def _opens_its_own(context: dict[str, Any]) -> bool:
    """A view that opens its own transactions has none around it; the nearest one would be somebody else's."""
    match = getattr(context.get("request"), "resolver_match", None)
    return bool(getattr(getattr(match, "func", None), "own_transactions", False))


def problem_of(exc: Exception) -> Problem | None:
    """The problem that an exception is, or None for a mistake of ours."""
    if isinstance(exc, Problem):
        return exc
    if isinstance(exc, exceptions.APIException):
        return _of_rest_framework(exc)
    if isinstance(exc, Http404 | ObjectDoesNotExist):
        return problems.NotFound()
    if isinstance(exc, DjangoPermissionDenied):
        return problems.Forbidden()
    if isinstance(exc, RequestDataTooBig):
        return problems.PayloadTooLarge()
    if isinstance(exc, SuspiciousOperation | BadRequest | UnreadablePostError):
        return problems.InvalidRequest()
    if isinstance(exc, OperationalError | InterfaceError | psycopg.OperationalError | psycopg.InterfaceError):
        return problems.Unavailable()
    return None


def _of_rest_framework(exc: exceptions.APIException) -> Problem:
    if isinstance(exc, exceptions.ValidationError):
        return _of_validation(exc)
    if isinstance(exc, exceptions.Throttled):
        return problems.RateLimited(retry_after=max(1, math.ceil(getattr(exc, "wait", None) or 1)))
    if isinstance(exc, exceptions.NotAuthenticated | exceptions.AuthenticationFailed):
        return problems.Unauthenticated()
    if isinstance(exc, exceptions.ParseError):
        return problems.InvalidRequest("The body could not be parsed")
    for kind, problem in (
        (exceptions.PermissionDenied, problems.Forbidden),
        (exceptions.NotFound, problems.NotFound),
        (exceptions.MethodNotAllowed, problems.MethodNotAllowed),
        (exceptions.NotAcceptable, problems.NotAcceptable),
        (exceptions.UnsupportedMediaType, problems.UnsupportedMediaType),
    ):
        if isinstance(exc, kind):
            return problem()
    return problems.Unavailable() if exc.status_code >= 500 else problems.InvalidRequest()


def _of_validation(exc: exceptions.ValidationError) -> Problem:
    failures = [failure for failure, _ in zip(_failures(exc.detail, ()), range(MAX_FAILURES), strict=False)]
    if not failures:
        return problems.InvalidRequest()
    first = failures[0]
    more: dict[str, Any] = {"errors": failures} if len(failures) > 1 else {}
    return problems.InvalidRequest(first["detail"], pointer=first["pointer"], **more)


def _failures(detail: Any, path: tuple[str | int, ...]) -> Iterator[dict[str, str]]:
    """Leaves of a serializer's errors; `non_field_errors` speak of the object that holds them."""
    if isinstance(detail, dict):
        for name, inner in detail.items():
            yield from _failures(inner, path if name == "non_field_errors" else (*path, name))
    elif isinstance(detail, list):
        for index, inner in enumerate(detail):
            leaf = isinstance(inner, exceptions.ErrorDetail)
            yield from _failures(inner, path if leaf else (*path, index))
    else:
        code = getattr(detail, "code", "invalid")
        yield {
            "pointer": pointer(*path),
            "detail": _FIELD_DETAILS.get(code, "This value is not acceptable"),
        }
