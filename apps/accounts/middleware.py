"""Verifies the credential of a request before any database session begins."""

from collections.abc import Callable

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponseBase

from apps.accounts.caller import SCOPES, Caller
from apps.accounts.credentials import caller_of_bearer
from apps.core.db.identity import StaffIdentity
from apps.core.problems import Problem, problem_response


class CallerMiddleware:
    """Sets `request.caller`. A credential that is present but invalid is an error, never anonymous."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        header = request.headers.get("Authorization")
        try:
            caller = caller_of_bearer(header) if header is not None else self._signed_in(request)
        except Problem as problem:
            return problem_response(problem)
        if caller is not None and caller.via != "session":
            # A cookie beside a credential counts for nothing, and a credential opens no page made for cookies.
            request.user = AnonymousUser()
        request.caller = caller  # type: ignore[attr-defined]
        return self.get_response(request)

    @staticmethod
    def _signed_in(request: HttpRequest) -> Caller | None:
        user = getattr(request, "user", None)
        if user is None or not (user.is_authenticated and user.is_active and user.is_staff):
            return None
        return Caller(identity=StaffIdentity(user.pk), via="session", scopes=frozenset(SCOPES))
