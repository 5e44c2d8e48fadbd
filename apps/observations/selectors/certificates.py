"""An owner's certificates. They name nobody, so which are whose stands beside them."""

from typing import Any
from uuid import UUID

from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session
from apps.core.pages import KeysetPage
from apps.core.problems import NotFound
from apps.observations.models import JournalErasure
from apps.operations.erasure import certificates
from apps.operations.erasure.models import ErasureCertificate

LISTING = "observations.erasure_certificates"


def certificate_page(owner: PrincipalIdentity, *, limit: int, cursor: str | None) -> dict[str, Any]:
    """Newest first; outside of any session. Raises UnknownCursor."""
    with principal_session(owner):
        page: KeysetPage[JournalErasure] = KeysetPage.of(
            JournalErasure.objects.filter(principal_id=owner.principal_id),
            limit=limit,
            cursor=cursor,
            owner=owner.principal_id,
            listing=LISTING,
            order=("-id",),
        )
    found = ErasureCertificate.objects.in_bulk([row.pk for row in page.items])
    return {
        "certificates": [certificates.document(found[row.pk]) for row in page.items if row.pk in found],
        "next_cursor": page.next_cursor,
        "previous_cursor": page.previous_cursor,
    }


def own_certificate(owner: PrincipalIdentity, certificate_id: UUID) -> dict[str, Any]:
    """Outside of any session. Raises NotFound."""
    with principal_session(owner):
        mine = JournalErasure.objects.filter(principal_id=owner.principal_id, pk=certificate_id).exists()
    if not mine:
        raise NotFound(code="unknown_erasure")
    return certificates.document(certificates.get(certificate_id))
