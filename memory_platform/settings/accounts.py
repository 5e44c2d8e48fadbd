"""Sign-in of staff, object permissions, trusted addresses and limits."""

from datetime import timedelta

from django.core.exceptions import ImproperlyConfigured

from memory_platform.embedded import connection_urls, redis_client_url
from memory_platform.environment import environment

_env = environment()
_oidc_gaps = _env.oidc_gaps()
if _oidc_gaps:
    raise ImproperlyConfigured(f"OIDC_CLIENT_ID needs an https address in {', '.join(_oidc_gaps)}.")

OUTBOUND_PRIVATE_HOSTS = frozenset(host.lower() for host in _env.outbound_private_hosts)
TRUSTED_PROXIES = _env.trusted_proxies

THROTTLE_URL = redis_client_url(_env.throttle_url or connection_urls(_env).broker)
THROTTLE_TOKEN_PER_MINUTE = _env.throttle_token_per_minute
THROTTLE_ADDRESS_PER_MINUTE = _env.throttle_address_per_minute
THROTTLE_FAILURES_PER_MINUTE = _env.throttle_failures_per_minute

AUTHENTICATION_BACKENDS = [
    # First: refuses while the name is locked at that address.
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
    "guardian.backends.ObjectPermissionBackend",
]
# Nobody acts without signing in, so no row stands for an anonymous user.
ANONYMOUS_USER_NAME = None
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"

# A name is locked at an address, so that nobody can lock out somebody else from afar.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_ON_SUCCESS = True
AXES_CLIENT_IP_CALLABLE = "apps.accounts.throttles.sign_in_address"
AXES_LOCKOUT_CALLABLE = "apps.accounts.views.locked_out"
AXES_ENABLE_ADMIN = False
AXES_DISABLE_ACCESS_LOG = True
AXES_VERBOSE = False

STAFF_SECOND_FACTOR = _env.staff_second_factor or _env.memory_production
OTP_TOTP_ISSUER = "Memory governance"
OTP_ADMIN_HIDE_SENSITIVE_DATA = True

OIDC_ENABLED = bool(_env.oidc_client_id)
OIDC_SECOND_FACTOR = _env.oidc_second_factor
if OIDC_ENABLED:
    AUTHENTICATION_BACKENDS += ["apps.accounts.oidc.StaffOIDCBackend"]
    OIDC_RP_CLIENT_ID = _env.oidc_client_id
    OIDC_RP_CLIENT_SECRET = _env.oidc_client_secret.get_secret_value() if _env.oidc_client_secret else ""
    OIDC_TOKEN_USE_BASIC_AUTH = _env.oidc_token_basic
    OIDC_RP_SIGN_ALGO = _env.oidc_sign_algorithm
    OIDC_RP_SCOPES = "openid email"
    OIDC_OP_ISSUER = _env.oidc_issuer
    OIDC_OP_AUTHORIZATION_ENDPOINT = _env.oidc_authorization_url
    OIDC_OP_TOKEN_ENDPOINT = _env.oidc_token_url
    OIDC_OP_USER_ENDPOINT = _env.oidc_user_url
    OIDC_OP_JWKS_ENDPOINT = _env.oidc_jwks_url
    OIDC_USE_PKCE = True
