"""What staff do to the traces of others: reveal a query, erase a trace. Each is audited in its transaction."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from apps.core import audit
from apps.core.db.sessions import GrantMissing, act_for, current_staff
from apps.core.problems import Forbidden
from apps.core.reasons import check_reason
from apps.traces.exceptions import UnknownTrace
from apps.traces.models import Trace
from apps.traces.services.erase import erase_trace


@dataclass(frozen=True, slots=True)
class RevealedQuery:
    """The query as it is kept. Without text it was never kept, or (with a time) it has been erased."""

    text: str | None
    erased_at: datetime | None

    @property
    def state(self) -> str:
        if self.text is not None:
            return "kept"
        return "erased" if self.erased_at is not None else "not_kept"


def owner_of(trace_id: UUID) -> UUID:
    """The principal of a trace that the staff session sees. Raises UnknownTrace."""
    current_staff()
    owner = Trace.objects.filter(pk=trace_id).values_list("principal_id", flat=True).first()
    if owner is None:
        raise UnknownTrace
    return owner


def reveal_query(*, trace_id: UUID, reason: str) -> RevealedQuery:
    """The raw query of a trace, for whoever holds `reveal_text`; audited. Raises UnknownTrace, Forbidden."""
    check_reason(reason)
    owner = owner_of(trace_id)
    try:
        with act_for(owner, "reveal_text"):
            found = Trace.objects.filter(pk=trace_id).values_list("query", "query_erased_at").first()
            if found is None:
                raise UnknownTrace
            revealed = RevealedQuery(*found)
            audit.record(
                "traces.reveal_query",
                "traces.trace",
                trace_id,
                reason=reason,
                details={"state": revealed.state},
            )
    except GrantMissing:
        raise Forbidden from None
    return revealed


def erase_trace_of_principal(*, trace_id: UUID, reason: str) -> None:
    """Erase a principal's trace for whoever holds `review_retention`; audited.

    Raises UnknownTrace, Forbidden, or LegalHold while a hold covers it.
    """
    check_reason(reason)
    owner = owner_of(trace_id)
    try:
        with act_for(owner, "review_retention"):
            erase_trace(trace_id=trace_id)
            audit.record("traces.erase", "traces.trace", trace_id, reason=reason)
    except GrantMissing:
        raise Forbidden from None
