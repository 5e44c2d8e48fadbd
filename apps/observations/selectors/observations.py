"""The owner's own records and enrolment."""

from typing import Any
from uuid import UUID

from apps.core import clock
from apps.core.db.sessions import current_principal
from apps.core.pages import KeysetPage
from apps.core.problems import NotFound
from apps.observations.fingerprints import is_linkable
from apps.observations.models import Enrolment, ObservationFeedback
from apps.observations.models.visible import VisibleObservation

ORDER = ("-observed_at", "-id")
LISTING = "observations"


def observation_page(*, limit: int, cursor: str | None) -> dict[str, Any]:
    """Own live records, newest first. Raises UnknownCursor."""
    owner = current_principal().principal_id
    page: KeysetPage[VisibleObservation] = KeysetPage.of(
        VisibleObservation.objects.filter(principal_id=owner),
        limit=limit,
        cursor=cursor,
        owner=owner,
        listing=LISTING,
        order=ORDER,
    )
    return {
        "observations": [_shown(row) for row in page.items],
        "next_cursor": page.next_cursor,
        "previous_cursor": page.previous_cursor,
    }


def observation_detail(observation_id: UUID) -> dict[str, Any]:
    """One own record with its feedback. Raises NotFound."""
    owner = current_principal().principal_id
    row = VisibleObservation.objects.filter(principal_id=owner, pk=observation_id).first()
    if row is None:
        raise NotFound(code="unknown_observation")
    given = ObservationFeedback.objects.filter(
        principal_id=owner, observation_id=observation_id, withdrawn_at=None
    )
    return _shown(row) | {"feedback": [feedback_shown(each) for each in given.order_by("hit_id")]}


def feedback_shown(row: ObservationFeedback) -> dict[str, Any]:
    return {
        "hit_id": str(row.hit_id),
        "helpful": row.helpful,
        "cited": row.cited,
        "updated_at": clock.iso(row.updated_at),
    }


def enrolment_shown() -> dict[str, Any]:
    """The session's principal's newest enrolment."""
    owner = current_principal().principal_id
    row = Enrolment.objects.filter(principal_id=owner).order_by("-enrolled_at", "-id").first()
    if row is None:
        return {"enrolled": False}
    return {
        "enrolled": row.withdrawn_at is None,
        "purpose": row.purpose,
        "consent_version": row.consent_version,
        "enrolled_at": clock.iso(row.enrolled_at),
        "withdrawn_at": clock.iso(row.withdrawn_at) if row.withdrawn_at else None,
    }


def _shown(row: VisibleObservation) -> dict[str, Any]:
    return {
        "id": str(row.id),
        "observed_at": clock.iso(row.observed_at),
        "corpus": row.corpus,
        "trace_id": str(row.trace_id) if row.trace_id else None,
        "text_disposition": row.text_disposition,
        "query_text": row.query_text,
        "record_expires_at": clock.iso(row.record_expires_at),
        "expires_at": clock.iso(row.expires_at),
        "purpose": row.purpose,
        "consent_version": row.consent_version,
        "release": row.release,
        "ranking_profile_id": str(row.ranking_profile_id) if row.ranking_profile_id else None,
        "fingerprint_linkable": is_linkable(row.fingerprint_key_id),
        "snapshot": row.snapshot,
    }
