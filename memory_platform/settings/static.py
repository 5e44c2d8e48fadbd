"""Static files: served by the web process itself, out of var/static, where `collectstatic` puts them."""

from memory_platform.environment import environment

env = environment()

STATIC_URL = "static/"
STATIC_ROOT = env.memory_var / "static"
# In production names carry their hash, so that browsers keep files for good and never hold an old one.
_STORAGE = "CompressedManifestStaticFilesStorage" if env.memory_production else "CompressedStaticFilesStorage"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": f"whitenoise.storage.{_STORAGE}"},
}
