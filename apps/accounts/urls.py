from django.conf import settings
from django.urls import URLPattern, URLResolver, path
from mozilla_django_oidc.views import OIDCAuthenticationRequestView

from apps.accounts.api import MeView
from apps.accounts.views import OIDCCallbackView, SecondFactorView
from apps.core.db.sessions import own_transactions

urlpatterns = [path("me", MeView.as_view(), name="me")]

root_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/second-factor/", SecondFactorView.as_view(), name="second-factor"),
]
# The names are those by which the library finds them.
OIDC_ROUTES = [
    path("oidc/authenticate/", OIDCAuthenticationRequestView.as_view(), name="oidc_authentication_init"),
    path("oidc/callback/", own_transactions(OIDCCallbackView.as_view()), name="oidc_authentication_callback"),
]
if settings.OIDC_ENABLED:
    root_urlpatterns += OIDC_ROUTES
