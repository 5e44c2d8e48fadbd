"""What staff do to imported receipts of others: look at the record, and reveal the text. Revealing is audited."""

from uuid import UUID

from apps.core import audit
from apps.core.db.sessions import GrantMissing, act_for, current_staff
from apps.core.problems import Forbidden
from apps.core.reasons import check_reason
from apps.retrieval.exceptions import UnknownReceipt
from apps.retrieval.models import PrmeReceipt
from apps.retrieval.verdicts import Verdict, prme_verdict

SEES, REVEALS = "view_traces", "reveal_text"


def examine_imported(*, receipt_id: UUID) -> Verdict:
    """The verdict on an imported receipt that the staff session sees.

    Its document holds the words of a query; whoever shows it leaves them out. Raises UnknownReceipt, Forbidden.
    """
    return prme_verdict(_read_for(receipt_id, SEES))


def reveal_imported(*, receipt_id: UUID, reason: str) -> str:
    """The text of an imported receipt, for whoever holds `reveal_text`; audited. Raises UnknownReceipt, Forbidden."""
    check_reason(reason)
    row = _read_for(receipt_id, REVEALS, reason)
    return row.document


def _read_for(receipt_id: UUID, grant: str, reason: str | None = None) -> PrmeReceipt:
    """The whole row, as its owner; with a reason, said in the audit log."""
    current_staff()
    owner = PrmeReceipt.objects.filter(pk=receipt_id).values_list("principal_id", flat=True).first()
    if owner is None:
        raise UnknownReceipt
    try:
        with act_for(owner, grant):
            row = PrmeReceipt.objects.filter(principal_id=owner, pk=receipt_id).first()
            if row is None:
                raise UnknownReceipt
            if reason is not None:
                audit.record("retrieval.reveal_imported", "retrieval.prmereceipt", receipt_id, reason=reason)
    except GrantMissing:
        raise Forbidden from None
    return row
