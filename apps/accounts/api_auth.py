"""Authentication and permission of the API, apart from its views because DRF imports these two first.

The middleware has verified the credential already; nothing here reads a header of identity.
"""

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser
from django.middleware.csrf import CsrfViewMiddleware
from django.utils.functional import SimpleLazyObject
from rest_framework.authentication import BaseAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from apps.accounts.caller import Caller
from apps.core.db.identity import StaffIdentity
from apps.core.problems import Forbidden, Unauthenticated

# For `required_scope` of a route that any valid token of the right kind may call.
NO_SCOPE = ""


class _CsrfCheck(CsrfViewMiddleware):
    """Django's own check; it answers with the reason instead of a page."""

    def _reject(self, request: Any, reason: str) -> Any:
        return reason


class CallerAuthentication(BaseAuthentication):
    """Hands on the caller that `CallerMiddleware` verified. `request.auth` is the Caller.

    A cookie is sent by browsers unasked, so that a call by cookie needs Django's CSRF token beside it.
    """

    def authenticate(self, request: Request) -> tuple[Any, Caller] | None:
        caller = caller_of(request)
        if caller is None:
            return None
        if caller.via == "session":
            self._enforce_csrf(request)
        return self._user(caller), caller

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"

    @staticmethod
    def _user(caller: Caller) -> Any:
        identity = caller.identity
        if isinstance(identity, StaffIdentity):
            return SimpleLazyObject(lambda: get_user_model().objects.get(pk=identity.user_id))
        return AnonymousUser()

    @staticmethod
    def _enforce_csrf(request: Request) -> None:
        check = _CsrfCheck(lambda inner: None)  # type: ignore[arg-type]
        check.process_request(request._request)
        if check.process_view(request._request, None, (), {}):  # type: ignore[arg-type]
            raise Forbidden("A call with the admin's cookie needs its CSRF token.", code="csrf_failed")


class CallerPermission(BasePermission):
    """Anonymous is 401; another kind of caller, or a credential without the scope, is 403."""

    def has_permission(self, request: Request, view: Any) -> bool:
        caller = caller_of(request)
        if caller is None:
            raise Unauthenticated
        if caller.kind not in view.kinds:
            raise Forbidden(f"This route is for a {' or '.join(view.kinds)}.")
        scope = view.scope_of(request.method or "GET")
        if scope not in caller.scopes and (scope != NO_SCOPE or not caller.scopes):
            raise Forbidden(f"This route needs a token with the scope {scope}." if scope else "")
        return True


def caller_of(request: Any) -> Caller | None:
    """The verified caller of a Django or DRF request, None when anonymous."""
    return getattr(getattr(request, "_request", request), "caller", None)
