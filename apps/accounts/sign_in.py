"""Whether a signed-in staff user may enter: password or OIDC, and the second factor where one is due.

A second factor is due when the setting asks it of all staff, and for whoever has set one up. An OIDC provider
that asks for one itself may count (OIDC_SECOND_FACTOR).
"""

from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY
from django.http import HttpRequest
from django_otp import user_has_device

OIDC_BACKEND = "apps.accounts.oidc.StaffOIDCBackend"


def is_staff(user: Any) -> bool:
    return bool(user is not None and user.is_authenticated and user.is_active and user.is_staff)


def second_factor_due(request: HttpRequest) -> bool:
    """Whether a staff user has yet to show a second factor in this browser session."""
    user = request.user
    if not is_staff(user) or user.is_verified():  # type: ignore[union-attr]
        return False
    if settings.OIDC_SECOND_FACTOR and request.session.get(BACKEND_SESSION_KEY) == OIDC_BACKEND:
        return False
    return settings.STAFF_SECOND_FACTOR or _has_device(request)


def _has_device(request: Any) -> bool:
    """Read once a request: whether one may enter is asked for every link of a page."""
    if not hasattr(request, "has_second_factor"):
        request.has_second_factor = user_has_device(request.user)
    return bool(request.has_second_factor)


def may_enter(request: HttpRequest) -> bool:
    """Whether the cookie of this request opens pages and routes of staff."""
    return is_staff(getattr(request, "user", None)) and not second_factor_due(request)
