"""Erasure of the journal by its owner: fence, line, batches, recount, certificate. Safe to repeat from any point.

The law: the fence is committed first, so that nothing observed until then can still become durable; then the line
goes to the erasure file; then rows go, expired and hidden ones and all copies that hang on them with them. A recount
in a new transaction decides. A certificate never says done while something is left; it names nobody and no record.
"""

import json
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DatabaseError, connection, transaction

from apps.core import audit, clock
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import acting_staff, current_principal, maintenance_session, principal_session
from apps.core.ids import uuid7
from apps.core.problems import NotFound
from apps.observations.models import JournalErasure, Observation
from apps.observations.schemas import JournalPlan
from apps.observations.selectors.exports import outstanding_copies
from apps.observations.standing import known
from apps.operations.erasure import certificates, lines, runs
from apps.operations.erasure.models import ErasureActor, ErasureCertificate, ErasureScope, ErasureStatus

log = structlog.get_logger(__name__)

BATCH = 1000
TABLES = (
    "observations_observation",
    "observations_observation_text",
    "observations_observation_feedback",
)
OBJECT = Observation._meta.label_lower
FAR = "infinity"


def plan() -> JournalPlan:
    """What an erasure of the session's principal's journal would delete now, hidden rows included."""
    counts = _count(FAR, None)
    return JournalPlan(
        scope="journal",
        observations=counts[TABLES[0]],
        texts=counts[TABLES[1]],
        feedback=counts[TABLES[2]],
    )


def begin(*, observation_id: UUID | None = None, withdraw: bool = False, send: bool = True) -> UUID:
    """Put up the fence around the session's principal's journal (or one record) and return the certificate's id.

    The deletion begins on commit; with `send` false the caller runs it then, and no worker hears of it. Once: while
    an erasure is under way, its certificate is returned. `withdraw` ends the enrolment, too. Raises NotFound for a
    record that is not the caller's.
    """
    certificate = uuid7()
    actor = ErasureActor.STAFF if acting_staff() else ErasureActor.OWNER
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT observations_erasure_begin(%s, %s, %s, %s, %s, %s)",
                [
                    certificate,
                    observation_id,
                    actor.value,
                    clock.now(),
                    settings.ERASURE_BACKUP_DAYS,
                    withdraw,
                ],
            )
            begun = cursor.fetchone()[0]
        if begun is None:
            raise NotFound(code="unknown_observation")
        if begun == certificate:
            _note_entry(certificate)
    known.forget()
    if send:
        transaction.on_commit(lambda: start(begun))
    return UUID(str(begun))


def start(certificate_id: UUID) -> None:
    """Once the fence is committed: write the line and send the deletion off. What fails here is tried again."""
    from apps.observations.tasks import erase

    for run in _open_runs(certificate_id):
        with principal_session(run):
            _write_line(JournalErasure.objects.get(pk=certificate_id))
    try:
        erase.delay(certificate_id)
    except Exception as error:  # the broker's own errors are many; the schedule finds the run
        log.warning("erasure_not_sent", error=type(error).__name__)


def run(certificate_id: UUID) -> ErasureCertificate:
    """Delete, recount and settle the certificate. Outside of any session; nothing to do when it is complete."""
    for identity in _open_runs(certificate_id):
        reason = _carry_out(certificate_id, identity)
        _settle(certificate_id, identity, reason)
    return certificates.get(certificate_id)


def resume() -> dict[str, int]:
    """Go on with every erasure that is not complete."""
    counts = {"complete": 0, "incomplete": 0}
    # Certificates first: what is begun in between is then not taken for one without a run.
    unfinished = set(
        ErasureCertificate.objects.filter(scope__in=(ErasureScope.JOURNAL, ErasureScope.ONE))
        .exclude(status=ErasureStatus.COMPLETE)
        .values_list("pk", flat=True)
    )
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute("SELECT certificate FROM observations_erasures_open(NULL)")
        keys = [key for (key,) in cursor.fetchall()]
    for key in sorted(unfinished - set(keys)):
        _complete_with_its_owner(key)
        counts["complete"] += 1
    for key in keys:
        done = run(key).status == ErasureStatus.COMPLETE
        counts["complete" if done else "incomplete"] += 1
    return counts


def _complete_with_its_owner(certificate_id: UUID) -> None:
    """The run went with everything that its principal owned, so nothing is left of what it was to delete."""
    known_tables = certificates.get(certificate_id).tables
    tables = [each | {"deleted": each["found"], "remaining": 0} for each in known_tables]
    _complete(certificate_id, tables, [])


def replay(line: lines.ErasureLine) -> UUID | None:
    """After a restore: fence and erase again. The certificate, or None when it is complete already."""
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT observations_erasure_replay(%s, %s, %s, %s, %s, %s, %s)",
            [
                line.certificate,
                line.scope,
                line.fence_at,
                line.workspace,
                line.principal,
                line.object_id,
                line.withdraw,
            ],
        )
        found = cursor.fetchone()[0]
    if found == "complete":
        return None
    if found == "absent":
        _complete(line.certificate, [], [])
    else:
        run(line.certificate)
    return line.certificate


def _open_runs(certificate_id: UUID) -> list[PrincipalIdentity]:
    """Whose erasure it is, as long as it is open. No look-up by the principal: it may be shut out by now."""
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT principal_id, workspace_id FROM observations_erasures_open(%s)", [certificate_id]
        )
        return [PrincipalIdentity(*row) for row in cursor.fetchall()]


def _carry_out(certificate_id: UUID, identity: PrincipalIdentity) -> str:
    """Why it stays incomplete; empty when nothing stood in the way."""
    try:
        with principal_session(identity):
            row = JournalErasure.objects.get(pk=certificate_id)
            written = _write_line(row)
            _note(certificate_id, counted=_count(row.fence_at, row.observation_id))
        while _erase_batch(certificate_id, identity):
            pass
    except DatabaseError as error:
        log.error("erasure_batch_failed", error=type(error).__name__)
        return runs.FAILED
    return "" if written else runs.LINE_MISSING


def _erase_batch(certificate_id: UUID, identity: PrincipalIdentity) -> int:
    """One committed batch; how many records went."""
    with principal_session(identity), connection.cursor() as cursor:
        cursor.execute("SELECT observations FROM observations_erase_own(%s, %s)", [certificate_id, BATCH])
        return int(cursor.fetchone()[0])


def _settle(certificate_id: UUID, identity: PrincipalIdentity, reason: str) -> None:
    with principal_session(identity):
        row = JournalErasure.objects.get(pk=certificate_id)
        remaining = _count(row.fence_at, row.observation_id)
        copies = outstanding_copies()
    if not reason and any(remaining.values()):
        reason = runs.ROWS_LEFT
    tables = _tables(row, remaining)
    if reason:
        ErasureCertificate.objects.filter(pk=certificate_id).exclude(status=ErasureStatus.COMPLETE).update(
            status=ErasureStatus.INCOMPLETE, reason_code=reason, tables=tables, export_copies=copies
        )
        runs.tell(certificates.get(certificate_id))
        return
    _complete(certificate_id, tables, copies)
    with principal_session(identity):
        _note(certificate_id, done=True)


def _complete(certificate_id: UUID, tables: list[dict[str, Any]], copies: list[dict[str, Any]]) -> None:
    with transaction.atomic():
        certificate = ErasureCertificate.objects.select_for_update().get(pk=certificate_id)
        if certificate.status == ErasureStatus.COMPLETE:
            return
        certificate.tables, certificate.export_copies = tables, copies
        certificate.reason_code, certificate.status = "", ErasureStatus.COMPLETE
        certificate.completed_at = clock.now()
        certificate.checksum = certificates.checksum(certificate)
        certificate.save()
    runs.tell(certificate)


def _tables(row: JournalErasure, remaining: dict[str, int]) -> list[dict[str, Any]]:
    found, deleted = row.found or {}, row.deleted or {}
    tables = []
    for table in TABLES:
        left = remaining[table]
        seen = max(found.get(table, 0), deleted.get(table, 0) + left)
        tables.append({"table": table, "found": seen, "deleted": seen - left, "remaining": left})
    return tables


def _count(until: Any, wanted: UUID | None) -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, rows FROM observations_own_count(%s, %s)", [until, wanted])
        return {name: int(rows) for name, rows in cursor.fetchall()}


def _write_line(row: JournalErasure) -> bool:
    """Append the line to the erasure file unless it is there. Says whether it is."""
    if row.line_written_at is not None:
        return True
    one = row.scope == ErasureScope.ONE
    line = lines.ErasureLine(
        certificate=row.pk,
        fence_at=row.fence_at,
        scope=row.scope,
        workspace=row.workspace_id,
        principal=row.principal_id,
        object_type=OBJECT if one else None,
        object_id=row.observation_id if one else None,
        withdraw=row.withdraw,
    )
    try:
        lines.append(line)
    except (OSError, lines.DamagedLine) as error:
        log.error("erasure_line_not_written", error=type(error).__name__)
        return False
    _note(row.pk, line=True)
    return True


def _note(
    certificate_id: UUID, *, counted: dict[str, int] | None = None, line: bool = False, done: bool = False
) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT observations_erasure_note(%s, %s::jsonb, %s, %s)",
            [certificate_id, json.dumps(counted) if counted is not None else None, line, done],
        )


def _note_entry(certificate_id: UUID) -> None:
    entry = audit.record(
        "observations.begin_erasure",
        "operations.erasurecertificate",
        certificate_id,
        workspace=current_principal().workspace_id,
    )
    with connection.cursor() as cursor:
        cursor.execute("SELECT observations_erasure_note_entry(%s, %s)", [certificate_id, entry])
