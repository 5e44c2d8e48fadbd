from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


def write_erasable_tables(sender: Any, **kwargs: Any) -> None:
    from apps.operations.erasure.rules import write_table

    write_table()


class OperationsConfig(AppConfig):
    name = "apps.operations"
    label = "operations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.operations import pruning

        pruning.register_own()
        # Sent once a migrate for each app, after all tables are there.
        post_migrate.connect(write_erasable_tables, sender=self)
