"""The platform's urls with those of OIDC sign-in, which are mounted where the environment turns it on."""

from apps.accounts.urls import OIDC_ROUTES
from memory_platform.urls import urlpatterns as platform

urlpatterns = [*OIDC_ROUTES, *platform]
