"""Verifies the credential of a request before any database session begins."""

from collections.abc import Callable

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponseBase

from apps.accounts import throttles
from apps.accounts.caller import SCOPES, Caller
from apps.accounts.credentials import caller_of_bearer
from apps.accounts.sign_in import may_enter
from apps.core.db.identity import PrincipalIdentity, StaffIdentity
from apps.core.problems import Problem, Unauthenticated, problem_response

API_PREFIX = "/v1/"


class CallerMiddleware:
    """Sets `request.caller`. A credential that is present but invalid is an error, never anonymous.

    Identity comes from the credential alone; no other header and no body is looked at.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        header = request.headers.get("Authorization")
        try:
            caller = self._caller(request, header)
        except Problem as problem:
            return problem_response(problem)
        if caller is not None and caller.via != "session":
            # A cookie beside a credential counts for nothing, and a credential opens no page made for cookies.
            request.user = AnonymousUser()
        request.caller = caller  # type: ignore[attr-defined]
        return self.get_response(request)

    def _caller(self, request: HttpRequest, header: str | None) -> Caller | None:
        limited = request.path_info.startswith(API_PREFIX) or header is not None
        if limited:
            throttles.require_address(request, with_credential=header is not None)
        if header is None:
            return self._signed_in(request)
        try:
            caller = caller_of_bearer(header)
        except Unauthenticated:
            throttles.note_failure(request)
            raise
        throttles.require("token", _bearer(caller), settings.THROTTLE_TOKEN_PER_MINUTE)
        return caller

    @staticmethod
    def _signed_in(request: HttpRequest) -> Caller | None:
        if not may_enter(request):
            return None
        return Caller(
            identity=StaffIdentity(int(request.user.pk or 0)), via="session", scopes=frozenset(SCOPES)
        )


def _bearer(caller: Caller) -> str:
    """A token counts for itself; the JWTs of one principal count together."""
    if caller.token_id is not None:
        return str(caller.token_id)
    identity = caller.identity
    return str(identity.principal_id if isinstance(identity, PrincipalIdentity) else identity.user_id)
