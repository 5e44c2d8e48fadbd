from django.apps import AppConfig


class ObservationsConfig(AppConfig):
    name = "apps.observations"
    label = "observations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.core.policies import register_kind
        from apps.observations import retention
        from apps.observations.policy import collection_kind

        register_kind(collection_kind())
        retention.register()
