"""Asking for an erasure: the plan, and the fence that begins it."""

from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, connection, transaction

from apps.core import audit, clock
from apps.core.db.sessions import GrantMissing, act_for, acting_staff, current_principal
from apps.core.ids import uuid7
from apps.core.problems import NotFound, StateConflict
from apps.core.reasons import check_reason
from apps.operations import holds
from apps.operations.erasure import runs
from apps.operations.erasure.models import ErasureActor
from apps.operations.erasure.schemas import ErasurePlan, PlannedTable

STAFF_GRANT = "review_retention"


class SharedPrincipal(StateConflict):
    code, title = "shared_principal", "What a workspace shares is not one person's to erase"


def plan() -> ErasurePlan:
    """What an erasure of the session's principal would delete now, in counts."""
    _refuse_shared()
    counts = {table: rows for table, rows in count_rows().items() if rows}
    return ErasurePlan(
        scope="all",
        tables=[PlannedTable(table=table, rows=rows) for table, rows in counts.items()],
        total_rows=sum(counts.values()),
        held=bool(held_kinds()),
        confirm="erase",
    )


def begin(*, reason: str = "") -> UUID:
    """Fence the session's principal out and return the certificate's id; the deletion follows on commit.

    Once: a second call returns the erasure that is under way. Raises LegalHoldInPlace, HoldCheckFailed,
    SharedPrincipal.
    """
    _refuse_shared()
    if held_kinds():
        raise holds.LegalHoldInPlace
    staff = acting_staff()
    certificate, entry = uuid7(), None
    with transaction.atomic():
        now = clock.now()
        actor = ErasureActor.STAFF if staff else ErasureActor.OWNER
        begun = _fence(certificate, actor, now)
        if begun == certificate:
            entry = audit.record(
                "operations.begin_erasure", "operations.erasurecertificate", certificate, reason=reason
            )
            _note_entry(certificate, entry)
    transaction.on_commit(lambda: runs.start(begun))
    return begun


def erase_principal(*, principal_id: UUID, reason: str) -> UUID:
    """The same by staff with `review_retention`, in their session. Raises NotFound, also without the grant."""
    check_reason(reason)
    try:
        with act_for(principal_id, STAFF_GRANT):
            return begin(reason=reason)
    except GrantMissing as error:
        raise NotFound(code="unknown_principal") from error


def plan_for(principal_id: UUID) -> ErasurePlan:
    """The plan, by staff with `review_retention`: what the admin shows before it asks for a reason."""
    try:
        with act_for(principal_id, STAFF_GRANT):
            return plan()
    except GrantMissing as error:
        raise NotFound(code="unknown_principal") from error


def count_rows() -> dict[str, int]:
    """Rows of the session's principal by table, expired and hidden ones included, in the order of deletion."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, rows FROM operations_erasure_counts()")
        return {name: int(rows) for name, rows in cursor.fetchall()}


def held_kinds() -> list[str]:
    """Kinds of the principal's objects that legal holds cover, under the lock of holds. Raises HoldCheckFailed."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT operations_erasure_held(%s)", [[kind.name for kind in holds.kinds()]])
            return list(cursor.fetchone()[0])
    except DatabaseError:
        raise holds.HoldCheckFailed from None


def _refuse_shared() -> None:
    principal = current_principal()
    if principal.principal_id == principal.shared_principal_id:
        raise SharedPrincipal


def _fence(certificate: UUID, actor: ErasureActor, now: datetime) -> UUID:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT operations_erasure_begin(%s, %s, %s, %s)",
            [certificate, actor.value, now, settings.ERASURE_BACKUP_DAYS],
        )
        found = cursor.fetchone()[0]
    if found is None:
        raise NotFound(code="unknown_principal")
    return UUID(str(found))


def _note_entry(certificate: UUID, entry: UUID) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT operations_erasure_note_entry(%s, %s)", [certificate, entry])
