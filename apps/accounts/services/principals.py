"""Principals: made by operators or at first sight, disabled and enabled again."""

from uuid import UUID

from apps.accounts import selectors, subjects
from apps.accounts.models import SHARED_SUBJECT, Principal
from apps.core import audit, clock
from apps.core.db.identity import PrincipalIdentity
from apps.core.problems import InvalidRequest, StateConflict


def enter_principal(*, workspace: UUID, subject: str) -> PrincipalIdentity:
    """The identity of a subject, made at first sight; outside of any session. NotFound when disabled."""
    return subjects.enter(workspace, subject)


def create_principal(*, workspace: UUID, subject: str, display_name: str = "", reason: str = "") -> Principal:
    """A principal by its full subject, in an operator's session. Raises InvalidRequest, StateConflict."""
    selectors.require_operator(workspace)
    subject = subjects.parse(subject)
    if Principal.objects.filter(workspace_id=workspace, subject=subject).exists():
        raise StateConflict("This workspace has a principal of that subject.", code="principal_exists")
    principal = Principal.objects.create(workspace_id=workspace, subject=subject, display_name=display_name)
    audit.record(
        "accounts.create_principal", "accounts.principal", principal.pk, workspace=workspace, reason=reason
    )
    return principal


def disable_principal(principal_id: UUID, *, reason: str) -> Principal:
    """Its tokens and JWTs are refused from the next request on; its rows stay. Idempotent."""
    principal = _changeable(principal_id)
    if principal.disabled_at is None:
        principal.disabled_at = clock.now()
        principal.save(update_fields=["disabled_at"])
        _record("accounts.disable_principal", principal, reason)
    return principal


def enable_principal(principal_id: UUID, *, reason: str) -> Principal:
    principal = _changeable(principal_id)
    if principal.disabled_at is not None:
        principal.disabled_at = None
        principal.save(update_fields=["disabled_at"])
        _record("accounts.enable_principal", principal, reason)
    return principal


def _changeable(principal_id: UUID) -> Principal:
    principal = selectors.get_principal(principal_id)
    selectors.require_operator(principal.workspace_id)
    if principal.subject == SHARED_SUBJECT:
        raise InvalidRequest("The shared principal of a workspace is always there.")
    return principal


def _record(action: str, principal: Principal, reason: str) -> None:
    audit.record(action, "accounts.principal", principal.pk, workspace=principal.workspace_id, reason=reason)
