"""The outermost middleware: gives every request an id, one log line, its counters and a span."""

import time
from collections.abc import Callable
from uuid import UUID

import structlog
from django.http import HttpRequest, HttpResponseBase
from opentelemetry import trace

from apps.core.db.identity import PrincipalIdentity
from apps.core.ids import uuid7
from apps.operations.metrics import REQUEST_SECONDS, REQUESTS

HEADER = "X-Request-ID"
NO_ROUTE = "unknown"
# Asked for every few seconds: they would bury the rest.
QUIET = ("health/live", "health/ready", "metrics")

logger = structlog.get_logger(__name__)
tracer = trace.get_tracer("memory_platform.web")


class RequestContextMiddleware:
    """`request.id` is the caller's X-Request-ID where that is a UUID, else a new one; the answer carries it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request_id = request_id_of(request)
        request.id = request_id  # type: ignore[attr-defined]
        started = time.monotonic()
        with (
            structlog.contextvars.bound_contextvars(request_id=str(request_id)),
            tracer.start_as_current_span("request", record_exception=False) as span,
        ):
            response = self.get_response(request)
            seconds, route = time.monotonic() - started, route_of(request)
            span.update_name(f"{request.method} {route}")
            span.set_attribute("http.route", route)
            span.set_attribute("http.response.status_code", response.status_code)
            _measure(request, response, route, seconds)
        response[HEADER] = str(request_id)
        return response


def request_id_of(request: HttpRequest) -> UUID:
    """Only a UUID is taken over: an id goes into logs and audit entries, where no text may."""
    try:
        return UUID(request.headers.get(HEADER, ""))
    except ValueError:
        return uuid7()


def route_of(request: HttpRequest) -> str:
    """The pattern of the route, never the path itself."""
    match = request.resolver_match
    return str(match.route) if match is not None else NO_ROUTE


def _measure(request: HttpRequest, response: HttpResponseBase, route: str, seconds: float) -> None:
    method = request.method if request.method in ("GET", "POST", "PUT", "PATCH", "DELETE") else "other"
    REQUESTS.labels(method, route, str(response.status_code)).inc()
    REQUEST_SECONDS.labels(route).observe(seconds)
    if route in QUIET and response.status_code < 400:
        return
    caller = getattr(request, "caller", None)
    more = {}
    if caller is not None and isinstance(caller.identity, PrincipalIdentity):
        more["workspace_id"] = str(caller.identity.workspace_id)
    logger.info(
        "request",
        method=method,
        route=route,
        status=response.status_code,
        duration_ms=round(seconds * 1000, 1),
        caller=caller.kind if caller is not None else "anonymous",
        **more,
    )
