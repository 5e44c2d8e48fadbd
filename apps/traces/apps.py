from django.apps import AppConfig


class TracesConfig(AppConfig):
    name = "apps.traces"
    label = "traces"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.core.policies import register_kind
        from apps.traces import retention
        from apps.traces.policy import memory_kind, register_holder

        register_kind(memory_kind())
        register_holder("activation", "traces_holds_activation")
        retention.register()
