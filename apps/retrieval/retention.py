"""What of retrieval goes by itself: imported receipts. Native ones go with their traces, or with what keeps them."""

from datetime import timedelta
from uuid import UUID

from apps.operations import expiry, holds
from apps.retrieval.models import PRME_HOLD, PrmeReceipt

IMPORTED = "retrieval_prme"


def register() -> None:
    """At start-up: what is drained, and what a hold may cover."""
    expiry.register(
        expiry.Expiry(
            IMPORTED,
            interval=timedelta(hours=1),
            function="retrieval_expire_prme",
            status_function="retrieval_prme_status",
            batch=500,
        )
    )
    holds.register_kind(holds.HoldKind(PRME_HOLD, "an imported receipt", locate=_workspace_of_receipt))


def _workspace_of_receipt(receipt_id: UUID) -> UUID | None:
    return PrmeReceipt.objects.filter(pk=receipt_id).values_list("workspace_id", flat=True).first()
