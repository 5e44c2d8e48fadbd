from django.apps import AppConfig


class RetrievalConfig(AppConfig):
    name = "apps.retrieval"
    label = "retrieval"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.core.policies import register_kind
        from apps.retrieval import (
            checks,  # noqa: F401  (registers them)
            retention,
        )
        from apps.retrieval.extensions import analyses
        from apps.retrieval.policy import scoring_kind
        from apps.retrieval.wording import EnglishWording

        register_kind(scoring_kind())
        retention.register()
        analyses.register("wording", EnglishWording)
