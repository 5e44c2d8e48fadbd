"""Revealing to staff the context of a receipt of others, as it was packed. Audited."""

from uuid import UUID

from apps.core import audit
from apps.core.db.sessions import GrantMissing, act_for, current_staff
from apps.core.problems import Forbidden
from apps.core.reasons import check_reason
from apps.retrieval.context import present_context
from apps.retrieval.exceptions import ContextChanged, UnknownReceipt
from apps.retrieval.models import Receipt
from apps.retrieval.selectors import stored_receipt


def reveal_context(*, receipt_id: UUID, reason: str) -> str:
    """The context that a receipt names, byte for byte, for whoever holds `reveal_text`; audited.

    It is rendered again from the present texts. Raises UnknownReceipt, Forbidden, or ContextChanged where they no
    longer give it or none was packed; a text that is not shown is no reveal and leaves no entry.
    """
    check_reason(reason)
    current_staff()
    owner = Receipt.objects.filter(pk=receipt_id).values_list("principal_id", flat=True).first()
    if owner is None:
        raise UnknownReceipt
    try:
        with act_for(owner, "reveal_text"):
            receipt = stored_receipt(receipt_id).receipt
            if receipt.packing is None:
                raise ContextChanged("No context was packed")
            text = present_context(receipt).text
            audit.record("retrieval.reveal_context", "retrieval.receipt", receipt_id, reason=reason)
    except GrantMissing:
        raise Forbidden from None
    return text
