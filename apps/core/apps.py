from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


def finish_migrating(sender: Any, using: str, **kwargs: Any) -> None:
    """What migrations leave to their end: grants as declared, and marks and signs that follow the declarations."""
    from apps.core.db.grants import sync_grants
    from apps.core.db.provision import renew_marks
    from apps.core.db.signatures import sign_checks, sign_policies

    sync_grants()
    renew_marks()
    sign_policies()
    sign_checks()


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
        post_migrate.connect(finish_migrating, sender=self)
