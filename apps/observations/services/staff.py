"""What staff do to observations of others: read one text, with a reason. Audited in its transaction."""

from uuid import UUID

from apps.core import audit
from apps.core.db.sessions import GrantMissing, act_for, current_staff
from apps.core.problems import Forbidden, NotFound
from apps.core.reasons import check_reason
from apps.observations import gate
from apps.observations.exceptions import JournalClosed
from apps.observations.models import Observation, ObservationText, StaffObservation


def is_open() -> bool:
    """Whether the journal is this database's. In a staff session."""
    return gate.is_open_for_staff()


def reveal_text(*, observation_id: UUID, reason: str) -> str | None:
    """The query of an observation that the staff session sees; None where no text lives.

    For whoever holds `reveal_text`. Raises NotFound, Forbidden, JournalClosed.
    """
    current_staff()
    check_reason(reason)
    if not is_open():
        raise JournalClosed
    seen = StaffObservation.objects.filter(pk=observation_id)
    owner = seen.values_list("principal_id", flat=True).first()
    if owner is None:
        raise NotFound(code="unknown_observation")
    try:
        with act_for(owner, "reveal_text"):
            found = ObservationText.objects.filter(pk=observation_id)
            text = found.values_list("query_text", flat=True).first()
            audit.record(
                "observations.reveal_text",
                Observation._meta.label_lower,
                observation_id,
                reason=reason,
                details={"state": "kept" if text is not None else "not_kept"},
            )
    except GrantMissing:
        raise Forbidden from None
    return text
