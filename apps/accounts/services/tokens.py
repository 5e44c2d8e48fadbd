"""Tokens: the secret is shown once, and only its SHA-256 is kept."""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from apps.accounts import selectors
from apps.accounts.caller import SCOPES
from apps.accounts.credentials import secret_digest
from apps.accounts.models import ApiToken, Principal
from apps.core import audit, clock
from apps.core.db.sessions import current_staff
from apps.core.problems import Forbidden, InvalidRequest, StateConflict

SECRET_PREFIX: Final = "mp_"
SECRET_BYTES: Final = 32
SHOWN_CHARACTERS: Final = 8


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token with its secret, which is known here and never again."""

    token: ApiToken
    secret: str


def create_token(
    *,
    name: str,
    scopes: list[str],
    principal: Principal | None = None,
    user_id: int | None = None,
    expires_at: datetime | None = None,
    speaks_for_user: bool = False,
    reason: str = "",
) -> NewToken:
    """A token of a principal (by operators of its workspace), or of a staff user (by that user).

    Raises InvalidRequest for an unknown scope, a past expiry or no one bearer; Forbidden.
    """
    _check(scopes, expires_at)
    if (principal is None) == (user_id is None):
        raise InvalidRequest("A token belongs to one principal or one staff user.")
    _require_may_issue(principal.workspace_id if principal else None, user_id)
    secret = SECRET_PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    token = ApiToken.objects.create(
        workspace_id=principal.workspace_id if principal else None,
        principal=principal,
        user_id=user_id,
        name=name,
        prefix=secret[:SHOWN_CHARACTERS],
        secret_sha256=secret_digest(secret),
        scopes=sorted(set(scopes)),
        speaks_for_user=speaks_for_user,
        expires_at=expires_at,
    )
    _record("accounts.create_token", token, reason, scopes=token.scopes, speaks_for_user=speaks_for_user)
    return NewToken(token, secret)


def revoke_token(token_id: UUID, *, reason: str = "") -> ApiToken:
    """Refused from the next request on, for ever. Idempotent. Raises NotFound, Forbidden."""
    token = selectors.get_token(token_id)
    _require_may_issue(token.workspace_id, token.user_id)
    if token.revoked_at is None:
        token.revoked_at = clock.now()
        token.save(update_fields=["revoked_at"])
        _record("accounts.revoke_token", token, reason)
    return token


def rotate_token(token_id: UUID, *, grace: timedelta = timedelta(0), reason: str = "") -> NewToken:
    """A new secret with the rights of the old one, which is revoked, or expires after `grace`.

    Raises NotFound, Forbidden, StateConflict for one that is no longer valid.
    """
    old = selectors.get_token(token_id)
    if old.revoked_at is not None or (old.expires_at is not None and old.expires_at <= clock.now()):
        raise StateConflict("A token that is no longer valid cannot be rotated.", code="token_not_valid")
    principal = selectors.get_principal(old.principal_id) if old.principal_id else None
    new = create_token(
        name=old.name,
        scopes=old.scopes,
        principal=principal,
        user_id=old.user_id,
        expires_at=old.expires_at,
        speaks_for_user=old.speaks_for_user,
        reason=reason,
    )
    if grace > timedelta(0):
        until = clock.now() + grace
        old.expires_at = until if old.expires_at is None else min(until, old.expires_at)
        old.save(update_fields=["expires_at"])
        _record("accounts.expire_token", old, reason)
    else:
        revoke_token(old.pk, reason=reason)
    return new


def _check(scopes: list[str], expires_at: datetime | None) -> None:
    if set(scopes) - set(SCOPES):
        raise InvalidRequest(f"Scopes are {', '.join(SCOPES)}.", pointer="/scopes")
    if expires_at is not None and expires_at <= clock.now():
        raise InvalidRequest("The expiry lies in the past.", pointer="/expires_at")


def _require_may_issue(workspace: UUID | None, user_id: int | None) -> None:
    """A staff user's token carries that user's grants, so nobody else may have its secret."""
    if workspace is not None:
        selectors.require_operator(workspace)
    elif user_id != current_staff().user_id and not selectors.is_superuser():
        raise Forbidden("A staff token is made by the user whose grants it carries.")


def _record(action: str, token: ApiToken, reason: str, **details: object) -> None:
    audit.record(
        action,
        "accounts.apitoken",
        token.pk,
        workspace=token.workspace_id,
        reason=reason,
        details={"prefix": token.prefix, **details},
    )
