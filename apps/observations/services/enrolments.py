"""Who takes part. Every step that shuts somebody out stands behind the fence: after its commit no search that was
admitted before can still become a record."""

import re
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, connection, transaction

from apps.accounts.models import Principal
from apps.core import audit
from apps.core.db.sessions import current_principal, current_staff
from apps.core.problems import Forbidden, InvalidRequest, NotFound
from apps.core.reasons import check_reason
from apps.core.text import refused_by
from apps.observations.exceptions import AlreadyEnrolled, KillSwitchThrown, OneEnrolmentNeeded
from apps.observations.fences import fence
from apps.observations.models import ActivationRun, Enrolment, KillSwitch
from apps.observations.models.activation import RunState
from apps.observations.services.reviews import SUBJECT
from apps.observations.standing import known
from apps.operations import reviews

CODE = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
GRANT = "operate_collection"


def enrol(*, principal_id: UUID, purpose: str, consent_version: str, reason: str) -> Enrolment:
    """Put a principal on the allow-list, in the staff session of a holder of `operate_collection`.

    `purpose` and `consent_version` are codes that every record repeats. Raises NotFound, Forbidden, AlreadyEnrolled,
    InvalidRequest, ReviewOverdue, OneEnrolmentNeeded while a pilot runs.
    """
    staff = current_staff()
    check_reason(reason)
    for name, value in (("purpose", purpose), ("consent_version", consent_version)):
        if not CODE.fullmatch(value) or refused_by(value) is not None:
            raise InvalidRequest("This is a code of a-z, 0-9, dot, dash and underscore", pointer=f"/{name}")
    workspace_id = Principal.objects.filter(pk=principal_id).values_list("workspace_id", flat=True).first()
    if workspace_id is None:
        raise NotFound(code="unknown_principal")
    _require_grant(workspace_id)
    _require_verified_pilot(workspace_id)
    reviews.require_reviewed(SUBJECT, workspace_id)
    try:
        with transaction.atomic():
            row = Enrolment.objects.create(
                workspace_id=workspace_id,
                principal_id=principal_id,
                purpose=purpose,
                consent_version=consent_version,
                enrolled_by_id=staff.user_id,
            )
    except IntegrityError:
        raise AlreadyEnrolled from None
    _audit("enrol", row, reason)
    return row


def withdraw(*, enrolment_id: UUID, reason: str) -> Enrolment:
    """End an enrolment, by staff. Records already written keep their deadlines."""
    current_staff()
    check_reason(reason)
    row = Enrolment.objects.filter(pk=enrolment_id).first()
    if row is None:
        raise NotFound(code="unknown_enrolment")
    _require_grant(row.workspace_id)
    fence(row.workspace_id)
    _end(row, reason)
    return row


def withdraw_own() -> Enrolment | None:
    """End the enrolment of the session's principal; the row, or None when it takes no part."""
    principal = current_principal()
    fence(principal.workspace_id)
    row = Enrolment.objects.filter(principal_id=principal.principal_id, withdrawn_at=None).first()
    if row is not None:
        _end(row, "")
    return row


def throw_kill_switch(*, workspace_id: UUID | None, reason: str) -> KillSwitch:
    """Stop all collection of a workspace; of the installation (None) by a superuser. Raises KillSwitchThrown."""
    staff = current_staff()
    check_reason(reason)
    _require_grant(workspace_id)
    fence(workspace_id)
    try:
        with transaction.atomic():
            row = KillSwitch.objects.create(
                workspace_id=workspace_id, thrown_by_id=staff.user_id, reason=reason
            )
    except IntegrityError:
        raise KillSwitchThrown from None
    _audit("throw_kill_switch", row, reason)
    known.forget()
    return row


def release_kill_switch(*, kill_switch_id: UUID, reason: str) -> KillSwitch:
    """Let collection go on, as far as mode and enrolments allow it. Raises NotFound."""
    staff = current_staff()
    check_reason(reason)
    row = KillSwitch.objects.filter(pk=kill_switch_id, released_at=None).first()
    if row is None:
        raise NotFound(code="unknown_kill_switch")
    _require_grant(row.workspace_id)
    row.released_at, row.released_by_id = _database_time(), staff.user_id
    row.save(update_fields=["released_at", "released_by"])
    _audit("release_kill_switch", row, reason)
    return row


def _end(row: Enrolment, reason: str) -> None:
    if row.withdrawn_at is None:
        row.withdrawn_at = _database_time()
        row.save(update_fields=["withdrawn_at"])
        _audit("withdraw", row, reason)
    known.forget()


def _audit(act: str, row: Enrolment | KillSwitch, reason: str) -> None:
    audit.record(
        f"observations.{act}", row._meta.label_lower, row.pk, workspace=row.workspace_id, reason=reason
    )


def _require_grant(workspace_id: UUID | None) -> None:
    with connection.cursor() as cursor:
        if workspace_id is None:
            cursor.execute("SELECT accounts_is_superuser()")
        else:
            cursor.execute("SELECT %s = ANY (accounts_granted_workspaces(%s))", [workspace_id, [GRANT]])
        if not cursor.fetchone()[0]:
            raise Forbidden


def _require_verified_pilot(workspace_id: UUID) -> None:
    """While a pilot is not verified it has the one enrolment with which it began."""
    if ActivationRun.objects.filter(workspace_id=workspace_id, state=RunState.ENABLED).exists():
        raise OneEnrolmentNeeded


def _database_time() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cursor.fetchone()[0]  # type: ignore[no-any-return]
