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


def context_is_whole(*, receipt_id: UUID) -> bool:
    """Whether the present texts still give the context of a receipt, for whoever may reveal it; shows nothing.

    False where none was packed. Raises UnknownReceipt, CorruptReceipt, Forbidden.
    """
    try:
        with act_for(_owner(receipt_id), "reveal_text"):
            _rendered(receipt_id)
    except ContextChanged:
        return False
    except GrantMissing:
        raise Forbidden from None
    return True


def reveal_context(*, receipt_id: UUID, reason: str) -> str:
    """The context that a receipt names, byte for byte, for whoever holds `reveal_text`; audited.

    It is rendered again from the present texts. Raises UnknownReceipt, Forbidden, or ContextChanged where they no
    longer give it or none was packed; a text that is not shown is no reveal and leaves no entry.
    """
    check_reason(reason)
    try:
        with act_for(_owner(receipt_id), "reveal_text"):
            text = _rendered(receipt_id)
            audit.record("retrieval.reveal_context", "retrieval.receipt", receipt_id, reason=reason)
    except GrantMissing:
        raise Forbidden from None
    return text


def _owner(receipt_id: UUID) -> UUID:
    """The principal of a receipt that the staff session sees."""
    current_staff()
    owner = Receipt.objects.filter(pk=receipt_id).values_list("principal_id", flat=True).first()
    if owner is None:
        raise UnknownReceipt
    return owner


def _rendered(receipt_id: UUID) -> str:
    """In the session of the principal."""
    receipt = stored_receipt(receipt_id).receipt
    if receipt.packing is None:
        raise ContextChanged("No context was packed")
    return present_context(receipt).text
