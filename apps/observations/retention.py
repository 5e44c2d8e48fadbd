"""What of the journal goes when, as the drain and the holds of operations know it."""

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection

from apps.core.db.sessions import maintenance_session
from apps.observations.models import (
    Evidence,
    ExportRecord,
    Observation,
    ObservationFeedback,
    ObservationText,
)
from apps.operations import expiry, holds, pruning

NAME = "observations"
INTERVAL = timedelta(minutes=15)
LOCK_TIMEOUT = timedelta(seconds=5)
OVERDUE_GRACE = timedelta(seconds=1200)


def register() -> None:
    """At start-up. Runs whatever the mode, the ceiling, the kill switch or the enrolments say."""
    expiry.register(
        expiry.Expiry(
            NAME,
            interval=INTERVAL,
            batch=settings.OBSERVATION_EXPIRE_BATCH,
            statement_timeout=timedelta(milliseconds=settings.OBSERVATION_STATEMENT_TIMEOUT_MS),
            lock_timeout=LOCK_TIMEOUT,
            budget=timedelta(seconds=settings.OBSERVATION_BUDGET_SECONDS),
            overdue_grace=OVERDUE_GRACE,
            failed=_note_failure,
        )
    )
    pruning.register_prune("prune_export_records", "observations_prune_exports")
    pruning.register_prune("prune_activations", "observations_prune_activations")
    register_holds()


def register_holds() -> None:
    """A hold keeps what was derived. Nothing keeps raw data beyond its 2160 hours, so that no hold may cover it."""
    for model in (Observation, ObservationText, ObservationFeedback):
        holds.register_kind(
            holds.HoldKind(model._meta.label_lower, f"an {model._meta.verbose_name}", raw=True)
        )
    holds.register_kind(
        holds.HoldKind(Evidence._meta.label_lower, "an evidence record", _workspace_of_evidence)
    )
    holds.register_kind(
        holds.HoldKind(ExportRecord._meta.label_lower, "an export record", _workspace_of_export)
    )


def _workspace_of_evidence(evidence_id: UUID) -> UUID | None:
    return Evidence.objects.filter(pk=evidence_id).values_list("workspace_id", flat=True).first()


def _workspace_of_export(record_id: UUID) -> UUID | None:
    return ExportRecord.objects.filter(pk=record_id).values_list("workspace_id", flat=True).first()


def _note_failure(code: str) -> None:
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute("SELECT observations_expire_failed(%s)", [code])
