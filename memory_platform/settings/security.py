"""Cookies and transport. Production adds what needs https, and refuses to run on defaults."""

from datetime import timedelta

from django.core.exceptions import ImproperlyConfigured

from memory_platform.environment import environment

_env = environment()
_production = _env.memory_production
LEAST_KEY_LENGTH = 50

if _production:
    if _env.debug:
        raise ImproperlyConfigured("DEBUG and MEMORY_PRODUCTION exclude each other.")
    if _env.secret_key is None or len(_env.secret_key.get_secret_value()) < LEAST_KEY_LENGTH:
        raise ImproperlyConfigured(f"SECRET_KEY of at least {LEAST_KEY_LENGTH} characters is needed.")

SESSION_COOKIE_HTTPONLY = True
# Lax, because the way back from an OIDC provider is a link from elsewhere.
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = int(timedelta(hours=12).total_seconds())
SESSION_EXPIRE_AT_BROWSER_CLOSE = True
SESSION_COOKIE_SECURE = _production
CSRF_COOKIE_SECURE = _production
CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
DATA_UPLOAD_MAX_MEMORY_SIZE = 5 * 1024 * 1024

if _env.trusted_proxies:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
if _production:
    SECURE_SSL_REDIRECT = True
    # Probes of a balancer come by plain http.
    SECURE_REDIRECT_EXEMPT = [r"^health/"]
    SECURE_HSTS_SECONDS = int(timedelta(days=365).total_seconds())
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_HSTS_PRELOAD = True
