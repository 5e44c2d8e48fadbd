"""Bases of every API view: who may call it, and as whom it runs.

A route is for one kind of caller and refuses the other with 403, and it names the token scope that it needs.
"""

from collections.abc import Mapping
from typing import ClassVar

from rest_framework.views import APIView

from apps.accounts.api_auth import NO_SCOPE, CallerAuthentication, CallerPermission, caller_of
from apps.accounts.caller import Caller
from apps.core.db.identity import PrincipalIdentity, StaffIdentity
from apps.core.problems import Forbidden, Unauthenticated

__all__ = ["NO_SCOPE", "CallerAPIView", "OpenAPIView", "PrincipalAPIView", "StaffAPIView", "caller_of"]

PRINCIPAL, STAFF = "principal", "staff"


class CallerAPIView(APIView):
    """A route for verified callers. Subclass one of the two below, or set `kinds` for a route of both.

    required_scope: the scope that a credential needs, or one for each method, e.g. {"GET": "search"}.
    """

    kinds: ClassVar[tuple[str, ...]] = (PRINCIPAL, STAFF)
    required_scope: ClassVar[str | Mapping[str, str]]
    authentication_classes = (CallerAuthentication,)
    permission_classes = (CallerPermission,)

    @classmethod
    def scope_of(cls, method: str) -> str:
        if isinstance(cls.required_scope, str):
            return cls.required_scope
        # A method that the route does not have goes on to its 405.
        return cls.required_scope.get(method, next(iter(cls.required_scope.values())))

    @property
    def caller(self) -> Caller:
        found = caller_of(self.request)
        if found is None:
            raise Unauthenticated
        return found


class PrincipalAPIView(CallerAPIView):
    """A route for applications: runs in the session of the principal that the token names."""

    kinds = (PRINCIPAL,)

    @property
    def principal(self) -> PrincipalIdentity:
        identity = self.caller.identity
        if not isinstance(identity, PrincipalIdentity):
            raise Forbidden
        return identity


class StaffAPIView(CallerAPIView):
    """A route for staff, by a token of their own or by the admin's cookie: runs in a staff session.

    What the user may see and do follows from grants on workspaces; the services check them.
    """

    kinds = (STAFF,)

    @property
    def staff(self) -> StaffIdentity:
        identity = self.caller.identity
        if not isinstance(identity, StaffIdentity):
            raise Forbidden
        return identity


class OpenAPIView(APIView):
    """A route without a credential. The structural test holds the list of the paths that may be one."""

    authentication_classes = ()
    permission_classes = ()
