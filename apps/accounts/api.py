"""Who am I: what a client asks first when its calls are refused."""

from typing import ClassVar

from django.contrib.auth.models import User
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts import selectors
from apps.accounts.api_base import NO_SCOPE, CallerAPIView
from apps.accounts.models import Workspace
from apps.accounts.schemas import Me
from apps.core.db.identity import PrincipalIdentity


class MeView(CallerAPIView):
    """The principal or staff user that the credential speaks for, and its scopes."""

    required_scope: ClassVar[str] = NO_SCOPE

    @extend_schema(operation_id="me", responses=Me)
    def get(self, request: Request) -> Response:
        return Response(self._me().model_dump(mode="json"))

    def _me(self) -> Me:
        caller = self.caller
        common = {"kind": caller.kind, "via": caller.via, "scopes": sorted(caller.scopes)}
        if not isinstance(caller.identity, PrincipalIdentity):
            user = User.objects.get(pk=caller.identity.user_id)
            return Me(subject=user.get_username(), display_name=user.get_full_name(), **common)
        principal = selectors.get_principal(caller.identity.principal_id)
        return Me(
            subject=principal.subject,
            display_name=principal.display_name,
            principal_id=principal.pk,
            workspace=Workspace.objects.get(pk=principal.workspace_id).slug,
            **common,
        )
