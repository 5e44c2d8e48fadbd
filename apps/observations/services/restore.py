"""The restore gate. A restored or copied database brings back what was deleted; its journal stays closed until what
is due is gone, erasures have run again, and two persons have opened it.

The law: nothing opens the gate but `open_gate`, after `drain` for this very database. Timestamps stay as they were.
"""

from datetime import timedelta
from pathlib import Path

import structlog
from django.contrib.auth.models import AbstractBaseUser
from django.db import DatabaseError, connection
from psycopg import errors

from apps.core import audit, clock
from apps.core.db.sessions import maintenance_session, staff_session
from apps.core.db.verify import differences
from apps.core.models.audit import DAYS_KEPT
from apps.core.problems import Forbidden
from apps.core.reasons import check_reason
from apps.observations import gate, retention, status
from apps.observations.models import MaintenanceState
from apps.observations.standing import known
from apps.operations import expiry
from apps.operations.erasure import lines, restore

log = structlog.get_logger(__name__)

OBJECT = MaintenanceState._meta.label_lower
GRANT = "operate_collection"


class GateRefused(RuntimeError):
    """A step of the gate cannot be taken now. `code` says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def drain(file: Path) -> int:
    """Expire what is due, replay the erasure file, and record both for the connected database.

    Outside of any session. Returns how many erasures ran again. Raises GateRefused, ExpiryFailed, OSError, and
    DamagedLine or NoReplay before any erasure runs.
    """
    while not expiry.drain(retention.NAME).drained:
        pass
    _require_nothing_due()
    replayed = restore.replay_file(file)
    if restore.missing(file):
        raise GateRefused("certificates_missing")
    with maintenance_session():
        _call("SELECT observations_gate_drained()")
        audit.record(
            "observations.drain_gate", OBJECT, 1, workspace=None, details={"erasures": len(replayed)}
        )
    return len(replayed)


def open_gate(*, first: AbstractBaseUser, second: AbstractBaseUser, reason: str) -> None:
    """Open the journal for the connected database, by two persons whose passwords the caller has checked.

    Outside of any session. Raises GateRefused unless it was drained for this database, nothing is due and the roles
    are as declared; Forbidden where the two are one, or one of them may not operate collection.
    """
    check_reason(reason)
    if first.pk == second.pk:
        raise Forbidden("The second person is another one")
    for person in (first, second):
        _require_right(person)
    _require_nothing_due()
    if differences():
        raise GateRefused("roles_differ")
    with staff_session(first):
        _call("SELECT observations_gate_opened(%s)", [second.pk])
        audit.record(
            "observations.open_gate", OBJECT, 1, workspace=None, reason=reason, details={"second": second.pk}
        )
    known.forget()


def close_gate(*, code: str = "asked") -> None:
    """Forget for which database the journal is open, and the drain. Outside of any session."""
    with maintenance_session():
        _call("SELECT observations_gate_closed()")
        audit.record("observations.close_gate", OBJECT, 1, workspace=None, details={"code": code})
    known.forget()


def close_if_restored() -> bool:
    """Close an open gate when the erasure file names a certificate that the database lacks. Says whether it is open.

    A restore that leaves the database's identity alone shows in nothing else. Outside of any session.
    """
    if not gate.is_open():
        return False
    if not _lacks_certificates():
        return True
    close_gate(code="certificates_missing")
    log.error("journal_closed", code="certificates_missing")
    return False


def _lacks_certificates() -> bool:
    """Certificates past their own term are gone rightly. A file that cannot be read proves nothing: a line may be
    half written at this moment, and every erasure fails loudly on a file that stays damaged."""
    try:
        named = {line.certificate: line.fence_at for line in lines.read()}
        missing = restore.missing() if named else []
    except FileNotFoundError:
        return False
    except (OSError, lines.DamagedLine) as error:
        log.error("erasure_file_unreadable", error=type(error).__name__)
        return False
    oldest = clock.now() - timedelta(days=DAYS_KEPT)
    return any(key in named and named[key] > oldest for key in missing)


def _require_nothing_due() -> None:
    """The status counts, read past every row policy; a restored heartbeat plays no part."""
    values = status.read().values
    counts = [value for name, value in values.items() if name.startswith("expired_")]
    if any(counts) or values["oldest_overdue_seconds"]:
        raise GateRefused("overdue_rows_left")


def _require_right(person: AbstractBaseUser) -> None:
    with staff_session(person), connection.cursor() as cursor:
        cursor.execute(
            "SELECT accounts_is_superuser() OR cardinality(accounts_granted_workspaces(%s)) > 0", [[GRANT]]
        )
        if not cursor.fetchone()[0]:
            raise Forbidden


def _call(sql: str, values: list[int] | None = None) -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql, values)
    except DatabaseError as error:
        if isinstance(error.__cause__, errors.ObjectNotInPrerequisiteState):
            raise GateRefused(error.__cause__.diag.message_primary or "refused") from None
        raise
