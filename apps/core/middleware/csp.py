"""Content-Security-Policy by kind of page.

Unfold's scripts evaluate strings, so `/admin` allows that and inline styles, and no other origin. Every page of
ours that does without them (desks, sign-in, errors, API) gets the strict policy, with no `unsafe-` word in it.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase

_COMMON: Final = (
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
ADMIN: Final = (
    f"default-src 'none'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; {_COMMON}"
)
STRICT: Final = f"default-src 'none'; script-src 'self'; style-src 'self'; {_COMMON}"
HEADER: Final = "Content-Security-Policy"
ADMIN_PREFIX: Final = "/admin/"


class ContentSecurityPolicyMiddleware:
    """Sets the header unless the view has; `strict` marks views below `/admin` that need no leniency."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        if HEADER not in response.headers:
            lenient = request.path.startswith(ADMIN_PREFIX) and response.status_code < 500
            response.headers[HEADER] = ADMIN if lenient else STRICT
        return response


def strict(view: Callable[..., Any]) -> Callable[..., Any]:
    """Give the answers of a view the strict policy."""

    @wraps(view)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        response = view(*args, **kwargs)
        response.headers[HEADER] = STRICT
        return response

    return wrapped
