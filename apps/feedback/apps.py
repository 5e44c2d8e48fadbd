from django.apps import AppConfig


class FeedbackConfig(AppConfig):
    name = "apps.feedback"
    label = "feedback"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.feedback import retention
        from apps.traces.policy import register_holder

        register_holder("credits", "feedback_holds_credit")
        retention.register()
