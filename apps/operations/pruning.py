"""What operations keep for a fixed term and then drop. The terms stand in the functions in PostgreSQL.

An app whose own rows have such a term adds a kind in the same way. What a legal hold covers stays: a certificate past
its 1826 days, and an audit entry, past which its chain is not cut.
"""

from datetime import datetime, timedelta
from uuid import UUID

from apps.core import audit
from apps.core.models.audit import DAYS_KEPT, AuditEntry
from apps.operations import holds
from apps.operations.erasure.models import ErasureCertificate, ErasureStatus
from apps.operations.expiry import Expiry, register

GROUP = "prune"
AUDIT_ENTRY = "core.auditentry"
CERTIFICATE = "operations.erasurecertificate"
# Deliveries before alarms, which they name; names sort in the order in which they are pruned.
PRUNED = (
    "deliveries",
    "alarms",
    "samples",
    "newest_samples",
    "job_runs",
    "processes",
    "leases",
    "holds",
    "certificates",
    "reviews",
    "staff_sessions",
)


def register_prune(name: str, function: str) -> None:
    """Have `operations.prune` drain `function(batch int, cutoff timestamptz)` every night."""
    register(
        Expiry(
            name,
            interval=timedelta(days=1),
            function=function,
            status_function=None,
            group=GROUP,
            budget=timedelta(minutes=5),
            batch=5000,
        )
    )


def _prune_audit(batch: int, cutoff: datetime) -> dict[str, int]:
    held = holds.held_ids(AUDIT_ENTRY)
    return {"entries": audit.prune(cutoff=cutoff - timedelta(days=DAYS_KEPT), batch=batch, held=held)}


def _workspace_of_entry(entry_id: UUID) -> UUID | None:
    # The installation's own chain belongs to no workspace, so no reviewer can hold it.
    return AuditEntry.objects.filter(pk=entry_id).values_list("workspace_id", flat=True).first()


def _workspace_of_certificate(certificate_id: UUID) -> UUID | None:
    """Of a complete one: what is under way goes on, whoever looks."""
    found = ErasureCertificate.objects.filter(pk=certificate_id, status=ErasureStatus.COMPLETE)
    return found.values_list("workspace_id", flat=True).first()


def register_own() -> None:
    holds.register_kind(holds.HoldKind(AUDIT_ENTRY, "an audit entry", locate=_workspace_of_entry))
    holds.register_kind(
        holds.HoldKind(CERTIFICATE, "an erasure certificate", locate=_workspace_of_certificate)
    )
    for name in PRUNED:
        register_prune(f"prune_{name}", f"operations_prune_{name}")
    register(
        Expiry(
            "prune_audit",
            interval=timedelta(days=1),
            status_function=None,
            group=GROUP,
            budget=timedelta(minutes=5),
            expire=_prune_audit,
        )
    )
