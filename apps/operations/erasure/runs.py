"""Carrying an erasure out: line, batches, recount, certificate. Safe to repeat from any point."""

from typing import Any
from uuid import UUID

import structlog
from django.apps import apps
from django.db import DatabaseError, IntegrityError, connection, transaction

from apps.core import audit, clock
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import current_principal, maintenance_session, principal_session
from apps.operations import alarms, holds
from apps.operations.erasure import certificates, lines, services
from apps.operations.erasure.models import ErasureCertificate, ErasureRun, ErasureStatus
from apps.operations.erasure.rules import DELETE, PRINCIPAL, ErasureRule, rules

BATCH = 1000
PASSES = 3
"""Rows that a write in flight leaves behind the first pass go in the next."""

SOURCE = "operations.erasure"
LINE_MISSING = "line_not_written"
HELD = "legal_hold"
HOLD_UNKNOWN = "hold_check_failed"
ROWS_LEFT = "rows_remaining"
FAILED = "delete_failed"

log = structlog.get_logger(__name__)


class Stopped(Exception):
    """The erasure cannot go on now; the certificate says why, by this code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def start(certificate_id: UUID) -> None:
    """Once the fence is committed: write the line, and send the deletion off. What fails here is tried again."""
    from apps.operations.erasure.tasks import erase

    run_row = ErasureRun.objects.filter(pk=certificate_id).first()
    if run_row is not None:
        write_line(run_row)
    try:
        erase.delay(certificate_id)
    except Exception as error:  # the broker's own errors are many; the schedule finds the run
        log.warning("erasure_not_sent", error=type(error).__name__)


def write_line(run_row: ErasureRun) -> bool:
    """Append the line to the erasure file unless it is there. Says whether it is."""
    if run_row.line_written_at is not None:
        return True
    certificate = certificates.get(run_row.pk)
    line = lines.ErasureLine(
        certificate=certificate.pk,
        fence_at=certificate.fence_at,
        scope=certificate.scope,
        workspace=run_row.workspace_id,
        principal=run_row.principal_id,
    )
    try:
        lines.append(line)
    except (OSError, lines.DamagedLine) as error:
        log.error("erasure_line_not_written", error=type(error).__name__)
        return False
    run_row.line_written_at = clock.now()
    run_row.save(update_fields=["line_written_at"])
    return True


def run(certificate_id: UUID) -> ErasureCertificate:
    """Delete, recount and settle the certificate. Outside of any session; nothing to do when it is complete."""
    certificate = certificates.get(certificate_id)
    run_row = ErasureRun.objects.filter(pk=certificate_id).first()
    if run_row is None:
        return certificate
    ErasureRun.objects.filter(pk=run_row.pk).update(attempts=run_row.attempts + 1)
    line = write_line(run_row)
    identity = PrincipalIdentity(run_row.principal_id, run_row.workspace_id, run_row.shared_principal_id)
    try:
        _keep_found(run_row, identity)
        _delete(identity)
        reason = "" if line else LINE_MISSING
    except Stopped as stopped:
        reason = stopped.code
    return _settle(certificate_id, identity, reason)


def resume() -> dict[str, int]:
    """Go on with every erasure that is not complete."""
    counts = {"complete": 0, "incomplete": 0}
    for key in list(ErasureRun.objects.order_by("pk").values_list("pk", flat=True)):
        done = run(key).status == ErasureStatus.COMPLETE
        counts["complete" if done else "incomplete"] += 1
    return counts


def _keep_found(run_row: ErasureRun, identity: PrincipalIdentity) -> None:
    if run_row.found is not None:
        return
    with principal_session(identity):
        found = services.count_rows()
    ErasureRun.objects.filter(pk=run_row.pk).update(found=found)


def _delete(identity: PrincipalIdentity) -> None:
    deletable = [rule for rule in rules() if rule.rule == DELETE]
    for _ in range(PASSES):
        try:
            for rule in deletable:
                while _delete_batch(identity, rule):
                    pass
            return
        except IntegrityError:
            # A write in flight committed behind us; the next pass takes it.
            continue
    raise Stopped(ROWS_LEFT)


def _delete_batch(identity: PrincipalIdentity, rule: ErasureRule) -> int:
    """One committed batch; how many rows went. Raises Stopped, IntegrityError."""
    try:
        with principal_session(identity):
            if services.held_kinds():
                raise Stopped(HELD)
            with connection.cursor() as cursor:
                cursor.execute("SELECT operations_erase_batch(%s, %s)", [rule.table, BATCH])
                return int(cursor.fetchone()[0])
    except IntegrityError:
        raise
    except holds.HoldCheckFailed:
        raise Stopped(HOLD_UNKNOWN) from None
    except DatabaseError as error:
        log.error("erasure_batch_failed", error=type(error).__name__)
        raise Stopped(FAILED) from None


def _settle(certificate_id: UUID, identity: PrincipalIdentity, reason: str) -> ErasureCertificate:
    """Recount in new transactions, write the certificate, and alarm or resolve."""
    run_row = ErasureRun.objects.filter(pk=certificate_id).first()
    if run_row is None:
        # Another worker has just completed it.
        return certificates.get(certificate_id)
    with principal_session(identity):
        remaining = services.count_rows()
        visible = _visible_rows()
    if not reason and (any(remaining.values()) or visible):
        reason = ROWS_LEFT
    with transaction.atomic():
        certificate = ErasureCertificate.objects.select_for_update().get(pk=certificate_id)
        certificate.tables = _tables(run_row, remaining)
        certificate.reason_code = reason
        if reason:
            certificate.status = ErasureStatus.INCOMPLETE
        else:
            certificate.status = ErasureStatus.COMPLETE
            certificate.completed_at = clock.now()
            certificate.checksum = certificates.checksum(certificate)
            run_row.delete()
        certificate.save()
    tell(certificate)
    return certificate


def _visible_rows() -> int:
    """Rows that the principal's own session still sees: what the API would show."""
    seen = 0
    for rule in rules():
        model = apps.get_model(rule.label)
        with connection.cursor() as cursor:
            cursor.execute("SELECT has_table_privilege(current_user, %s, 'SELECT')", [rule.table])
            if not cursor.fetchone()[0]:
                continue
        owner = "pk" if rule.label == PRINCIPAL else "principal_id"
        seen += model._default_manager.filter(**{owner: current_principal().principal_id}).count()
    return seen


def _tables(run_row: ErasureRun, remaining: dict[str, int]) -> list[dict[str, Any]]:
    """Found, deleted, remaining. What came after the first count was found, too; a cascade is the difference."""
    found, deleted = run_row.found or {}, run_row.deleted or {}
    tables = []
    for table, left in remaining.items():
        gone = deleted.get(table, 0)
        seen = max(found.get(table, 0), gone + left)
        if seen:
            tables.append({"table": table, "found": seen, "deleted": seen - left, "remaining": left})
    return tables


def tell(certificate: ErasureCertificate) -> None:
    """Audit how an erasure of whatever scope ended, and alarm on the incomplete ones of its workspace."""
    done = certificate.status == ErasureStatus.COMPLETE
    with maintenance_session():
        audit.record(
            "operations.complete_erasure" if done else "operations.stop_erasure",
            "operations.erasurecertificate",
            certificate.pk,
            workspace=certificate.workspace_id,
            after=certificate.checksum or None,
            details={"code": certificate.reason_code} if not done else {},
        )
    open_ones = ErasureCertificate.objects.filter(
        status=ErasureStatus.INCOMPLETE, workspace_id=certificate.workspace_id
    )
    codes = set(open_ones.values_list("reason_code", flat=True))
    readings: dict[str, dict[str, Any]] = {
        code: {"erasures": open_ones.filter(reason_code=code).count()} for code in codes
    }
    alarms.settle(source=SOURCE, readings=readings, workspace=certificate.workspace_id)
