from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


def make_grants(sender: Any, using: str, **kwargs: Any) -> None:
    from apps.core.db.grants import sync_grants

    sync_grants()


class CoreConfig(AppConfig):
    name = "apps.core"
    label = "core"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Registers itself with drf-spectacular when imported.
        import apps.core.openapi  # noqa: F401
        from apps.core import checks  # noqa: F401  (registers them)
        from apps.core.db import wire

        wire.register()

        # Sent once a migrate for each app, after all tables are there; ours is enough.
        post_migrate.connect(make_grants, sender=self)
