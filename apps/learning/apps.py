from django.apps import AppConfig


class LearningConfig(AppConfig):
    name = "apps.learning"
    label = "learning"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.core.policies import register_kind
        from apps.learning import retention
        from apps.learning.policy import gate_kind

        register_kind(gate_kind())
        retention.register_evidence()
