"""The content security policy of each kind of page."""

from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from apps.core.middleware.csp import ADMIN, HEADER, STRICT, ContentSecurityPolicyMiddleware, strict


def _header(path: str, status: int = 200) -> str:
    middleware = ContentSecurityPolicyMiddleware(lambda request: HttpResponse(status=status))
    return middleware(RequestFactory().get(path)).headers[HEADER]


def test_the_admin_may_evaluate_and_nothing_comes_from_elsewhere() -> None:
    assert _header("/admin/traces/") == ADMIN
    assert "'unsafe-eval'" in ADMIN
    assert "http" not in ADMIN
    assert "script-src 'self' 'unsafe-eval';" in ADMIN
    for directive in (
        "default-src 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "form-action 'self'",
    ):
        assert directive in ADMIN
        assert directive in STRICT


def test_everything_else_has_no_unsafe_word() -> None:
    assert "unsafe" not in STRICT
    for path in ("/v1/search", "/desk/labels/", "/", "/administrator/"):
        assert _header(path) == STRICT


def test_a_failed_admin_page_gets_the_strict_policy() -> None:
    assert _header("/admin/", 500) == STRICT


def test_a_view_may_ask_for_the_strict_policy() -> None:
    @strict
    def view(request: HttpRequest) -> HttpResponse:
        return HttpResponse()

    middleware = ContentSecurityPolicyMiddleware(view)
    assert middleware(RequestFactory().get("/admin/login/")).headers[HEADER] == STRICT
