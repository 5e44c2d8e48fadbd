"""From an Authorization header to a verified caller."""

import hashlib

from django.db import connection

from apps.accounts.caller import Caller
from apps.accounts.issuers.verify import caller_of_jwt, looks_like_jwt
from apps.core import clock
from apps.core.db.identity import PrincipalIdentity, StaffIdentity
from apps.core.problems import Unauthenticated


def secret_digest(secret: str) -> bytes:
    """What is kept of a token's secret: SHA-256, enough for 256 random bits."""
    return hashlib.sha256(secret.encode()).digest()


def caller_of_bearer(header: str) -> Caller:
    """The caller that the header's credential names. Raises Unauthenticated for anything else."""
    scheme, _, credential = header.partition(" ")
    credential = credential.strip()
    if scheme.lower() != "bearer" or not credential or len(credential) > 8192:
        raise Unauthenticated
    return caller_of_jwt(credential) if looks_like_jwt(credential) else _caller_of_token(credential)


def _caller_of_token(secret: str) -> Caller:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT token_id, user_id, principal_id, workspace_id, shared_principal_id, scopes, "
            "speaks_for_user, expires_at FROM accounts_find_token(%s)",
            [secret_digest(secret)],
        )
        row = cursor.fetchone()
    if row is None:
        raise Unauthenticated
    token_id, user_id, principal_id, workspace_id, shared_id, scopes, speaks, expires_at = row
    if expires_at is not None and expires_at <= clock.now():
        raise Unauthenticated
    identity = StaffIdentity(user_id) if user_id else PrincipalIdentity(principal_id, workspace_id, shared_id)
    return Caller(identity, "token", frozenset(scopes), token_id, speaks)
