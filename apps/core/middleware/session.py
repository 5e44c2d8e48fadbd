"""The innermost middleware: a request runs in one transaction, as the identity of its caller.

It wraps view, exception conversion and template rendering alike; an outer place would render with no identity,
an inner one (the view alone) would leave admin templates without their related rows.
"""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from django.urls import Resolver404, resolve

from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session, staff_session

GetResponse = Callable[[HttpRequest], HttpResponseBase]


class DatabaseSessionMiddleware:
    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        caller = getattr(request, "caller", None)
        if caller is None or self._opens_its_own(request):
            return self.get_response(request)
        if isinstance(caller.identity, PrincipalIdentity):
            with principal_session(caller.identity):
                return self.get_response(request)
        with staff_session(caller.identity.user_id):
            return self.get_response(request)

    @staticmethod
    def _opens_its_own(request: HttpRequest) -> bool:
        try:
            match = resolve(request.path_info)
        except Resolver404:
            return False
        return bool(getattr(match.func, "own_transactions", False))
