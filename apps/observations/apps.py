from django.apps import AppConfig
from django.db.models.signals import pre_migrate


class ObservationsConfig(AppConfig):
    name = "apps.observations"
    label = "observations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.core.checks import register_refusal
        from apps.core.policies import register_kind
        from apps.observations import retention
        from apps.observations.dropping import refuse_dropping
        from apps.observations.policy import collection_kind
        from apps.observations.reporting import heartbeat_report, refusal
        from apps.observations.services import erasure, reviews
        from apps.operations import heartbeats
        from apps.operations.erasure.models import ErasureScope
        from apps.operations.erasure.restore import register_replay

        pre_migrate.connect(refuse_dropping, sender=self)
        register_kind(collection_kind())
        retention.register()
        reviews.register()
        heartbeats.register_report("observations", heartbeat_report)
        register_refusal(refusal)
        register_replay(ErasureScope.JOURNAL.value, erasure.replay)
        register_replay(ErasureScope.ONE.value, erasure.replay)
