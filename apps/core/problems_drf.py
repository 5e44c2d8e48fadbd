"""DRF's exceptions as problem documents."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from apps.core.problems import MEDIA_TYPE, Forbidden, InvalidRequest, NotFound, Problem, Unauthenticated

BY_STATUS = {401: Unauthenticated, 403: Forbidden, 404: NotFound, 400: InvalidRequest}


def exception_handler(exception: Exception, context: dict[str, Any]) -> Response | None:
    """The answer to an exception of a view; None lets Django answer 500."""
    problem = as_problem(exception)
    if problem is None:
        return None
    set_rollback()
    return Response(problem.document(), problem.status, headers=problem.headers, content_type=MEDIA_TYPE)


def as_problem(exception: Exception) -> Problem | None:
    if isinstance(exception, Problem):
        return exception
    if isinstance(exception, Http404):
        return NotFound()
    if isinstance(exception, PermissionDenied):
        return Forbidden()
    if isinstance(exception, exceptions.APIException):
        return _of_drf(exception)
    return None


def _of_drf(exception: exceptions.APIException) -> Problem:
    known = BY_STATUS.get(exception.status_code)
    if known is not None:
        return known()
    problem = Problem(code=exception.default_code)
    problem.status = exception.status_code  # type: ignore[misc]
    problem.title = str(exception.default_detail)  # type: ignore[misc]
    return problem
