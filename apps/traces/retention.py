"""What of the feedback memory goes when, as the drain and the holds of operations know it.

Expiry hides at once, by row policy; the tasks here only delete what nobody sees any more.
"""

from datetime import timedelta
from uuid import UUID

from apps.accounts.models import Principal
from apps.operations import expiry, holds
from apps.traces.models import Trace

TRACES, TEXTS, ACTIVATION = "traces", "traces_text", "traces_activation"


def register() -> None:
    """At start-up: what is drained, and what a hold may cover."""
    expiry.register(expiry.Expiry(TRACES, interval=timedelta(hours=1)))
    expiry.register(expiry.Expiry(TEXTS, interval=timedelta(hours=1), function="traces_erase_text"))
    expiry.register(
        expiry.Expiry(
            ACTIVATION,
            interval=timedelta(days=1),
            function="traces_prune_activation",
            status_function=None,
            batch=5000,
        )
    )
    holds.register_kind(holds.HoldKind("traces.trace", "a trace", locate=_workspace_of_trace))
    holds.register_kind(
        holds.HoldKind("traces.principal", "all traces of a principal", locate=_workspace_of_principal)
    )


def _workspace_of_trace(trace_id: UUID) -> UUID | None:
    return Trace.objects.filter(pk=trace_id).values_list("workspace_id", flat=True).first()


def _workspace_of_principal(principal_id: UUID) -> UUID | None:
    return Principal.objects.filter(pk=principal_id).values_list("workspace_id", flat=True).first()
