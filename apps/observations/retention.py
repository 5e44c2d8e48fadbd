"""What of the journal goes when, as the drain of operations knows it."""

from datetime import timedelta

from django.conf import settings
from django.db import connection

from apps.core.db.sessions import maintenance_session
from apps.operations import expiry, pruning

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


def _note_failure(code: str) -> None:
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute("SELECT observations_expire_failed(%s)", [code])
