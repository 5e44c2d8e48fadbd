"""Errors that cross the API: problem documents (RFC 9457) with a stable `code`.

A document never echoes what was sent: no query, handle, secret or driver message.
"""

from typing import Any, ClassVar

from django.http import HttpResponse

from apps.core import canonical

MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """Base of every error that the API shows. Subclasses fix `code`, `status` and `title`."""

    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500
    title: ClassVar[str] = "Something went wrong here"

    def __init__(
        self, detail: str = "", *, pointer: str | None = None, code: str | None = None, **more: Any
    ) -> None:
        super().__init__(code or self.code)
        self.shown_code = code or self.code
        self.detail = detail
        self.pointer = pointer
        self.more = more
        self.headers: dict[str, str] = {}

    def document(self) -> dict[str, Any]:
        """The members of the problem document, ready for JSON."""
        document: dict[str, Any] = {
            "type": f"/problems/{self.shown_code}",
            "title": self.title,
            "status": self.status,
            "code": self.shown_code,
        }
        if self.detail:
            document["detail"] = self.detail
        if self.pointer is not None:
            document["pointer"] = self.pointer
        return document | self.more


class InvalidRequest(Problem):
    code, status, title = "invalid_request", 400, "The request is not well formed"


class UnknownCursor(Problem):
    code, status, title = "unknown_cursor", 400, "This cursor does not belong to this listing"


class Unauthenticated(Problem):
    code, status, title = "unauthenticated", 401, "A valid credential is needed"

    def __init__(self, detail: str = "", **more: Any) -> None:
        super().__init__(detail, **more)
        self.headers["WWW-Authenticate"] = "Bearer"


class Forbidden(Problem):
    code, status, title = "forbidden", 403, "This credential does not allow that"


class NotFound(Problem):
    """Not there, or not the caller's: one answer for both. Give `code="unknown_<thing>"`."""

    code, status, title = "not_found", 404, "Nothing here by that name"


class MethodNotAllowed(Problem):
    code, status, title = "method_not_allowed", 405, "This address does not take this method"


class NotAcceptable(Problem):
    code, status, title = "not_acceptable", 406, "No form of the answer suits the Accept header"


class StateConflict(Problem):
    code, status, title = "conflict", 409, "The present state does not allow that"


class StaleVersion(Problem):
    code, status, title = "stale_version", 412, "The object has changed since it was read"


class PayloadTooLarge(Problem):
    code, status, title = "payload_too_large", 413, "The request is larger than allowed"


class UnsupportedMediaType(Problem):
    code, status, title = "unsupported_media_type", 415, "This address does not read this media type"


class Unprocessable(Problem):
    code, status, title = "unprocessable", 422, "The request names something that is not in the object"


class ResponseTooLarge(Problem):
    code, status, title = "response_too_large", 422, "The answer would be larger than allowed"


class VersionRequired(Problem):
    code, status, title = "version_required", 428, "Send the version that you read as If-Match"


class RateLimited(Problem):
    code, status, title = "rate_limited", 429, "Too many requests"

    def __init__(self, detail: str = "", *, retry_after: int, **more: Any) -> None:
        super().__init__(detail, **more)
        self.headers["Retry-After"] = str(retry_after)


class Unavailable(Problem):
    code, status, title = "unavailable", 503, "A part of the platform does not answer"


def problem_response(problem: Problem) -> HttpResponse:
    """The problem as an HTTP answer, outside of DRF (middleware, plain views)."""
    response = HttpResponse(
        canonical.dumps(problem.document()), status=problem.status, content_type=MEDIA_TYPE
    )
    for name, value in problem.headers.items():
        response[name] = value
    return response
