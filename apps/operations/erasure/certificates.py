"""Certificates as documents: read by anyone who knows the id, sealed by a checksum when complete."""

from typing import Any
from uuid import UUID

from apps.core import canonical, clock
from apps.core.problems import NotFound
from apps.operations.erasure.models import ErasureCertificate


def get(certificate_id: UUID) -> ErasureCertificate:
    """Outside of any session. Raises NotFound."""
    found = ErasureCertificate.objects.filter(pk=certificate_id).first()
    if found is None:
        raise NotFound(code="unknown_erasure")
    return found


def document(certificate: ErasureCertificate) -> dict[str, Any]:
    """The certificate as JSON (`schemas.Certificate`)."""
    done = certificate.completed_at
    return {
        "version": certificate.version,
        "id": str(certificate.pk),
        "scope": certificate.scope,
        "actor": certificate.actor,
        "status": certificate.status,
        "reason_code": certificate.reason_code or None,
        "requested_at": clock.iso(certificate.requested_at),
        "fence_at": clock.iso(certificate.fence_at),
        "completed_at": clock.iso(done) if done else None,
        "tables": certificate.tables,
        "export_copies": certificate.export_copies,
        "backup_days": certificate.backup_days,
        "audit_entry": str(certificate.audit_entry_id) if certificate.audit_entry_id else None,
        "checksum": certificate.checksum or None,
    }


def checksum(certificate: ErasureCertificate) -> str:
    """SHA-256 over the canonical JSON of the document without its checksum."""
    body = document(certificate)
    del body["checksum"]
    return canonical.checksum(body)
