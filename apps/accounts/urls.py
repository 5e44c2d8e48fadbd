from django.conf import settings
from django.urls import URLPattern, URLResolver, include, path

from apps.accounts.api import MeView
from apps.accounts.views import SecondFactorView

urlpatterns = [path("me", MeView.as_view(), name="me")]

root_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/second-factor/", SecondFactorView.as_view(), name="second-factor"),
]
if settings.OIDC_ENABLED:
    root_urlpatterns.append(path("oidc/", include("mozilla_django_oidc.urls")))
