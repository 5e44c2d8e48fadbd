"""Staff sign-in through an OpenID Connect provider: it says who came, the platform who is staff."""

from typing import Any

from django.contrib.auth.models import User
from mozilla_django_oidc.auth import OIDCAuthenticationBackend


class StaffOIDCBackend(OIDCAuthenticationBackend):
    """Finds the one active staff user with the e-mail address that the provider has verified; makes none."""

    def verify_claims(self, claims: dict[str, Any]) -> bool:
        return claims.get("email_verified") is True and bool(claims.get("email"))

    def filter_users_by_claims(self, claims: dict[str, Any]) -> Any:
        return User.objects.filter(email__iexact=claims["email"], is_active=True, is_staff=True)
