"""Sign-in of staff and object permissions."""

AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "guardian.backends.ObjectPermissionBackend",
]
# Nobody acts without signing in, so no row stands for an anonymous user.
ANONYMOUS_USER_NAME = None
