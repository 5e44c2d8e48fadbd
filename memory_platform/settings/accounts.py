"""Sign-in of staff and object permissions."""

from memory_platform.environment import environment

OUTBOUND_PRIVATE_HOSTS = frozenset(host.lower() for host in environment().outbound_private_hosts)

AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "guardian.backends.ObjectPermissionBackend",
]
# Nobody acts without signing in, so no row stands for an anonymous user.
ANONYMOUS_USER_NAME = None
