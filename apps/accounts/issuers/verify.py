"""From a JWT to the caller that it names. Everything that is wrong with one is the same 401."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import jwt
from django.db import connection
from jwt.exceptions import PyJWTError

from apps.accounts import subjects
from apps.accounts.caller import SCOPES, Caller
from apps.accounts.issuers import keys, signed
from apps.core.problems import NotFound, Unauthenticated


@dataclass(frozen=True, slots=True)
class Issuer:
    """A row of `accounts_find_issuers`."""

    id: UUID
    workspace_id: UUID
    audience: str
    jwks_url: str
    pinned_keys: list[dict[str, Any]]
    subject_claim: str
    subject_prefix: str
    algorithms: list[str]
    scopes: list[str]
    scope_claim: str
    speaks_for_user: bool


def looks_like_jwt(credential: str) -> bool:
    return credential.count(".") == 2


def caller_of_jwt(token: str) -> Caller:
    """The principal that a JWT names, made at first sight. Raises Unauthenticated. Outside of any session."""
    try:
        algorithm, key_id = signed.header(token)
        issuer = _issuer(token)
        if algorithm not in issuer.algorithms:
            raise Unauthenticated
        claims = _verified(token, issuer, algorithm, key_id)
    except signed.InvalidToken as error:
        raise Unauthenticated from error
    subject = subjects.of_claim(issuer.subject_prefix, claims.get(issuer.subject_claim))
    if subject is None:
        raise Unauthenticated
    try:
        identity = subjects.enter(issuer.workspace_id, subject)
    except NotFound as error:
        raise Unauthenticated from error
    return Caller(identity, "jwt", _scopes(issuer, claims), None, issuer.speaks_for_user)


def _issuer(token: str) -> Issuer:
    """The one trusted issuer that the (still unverified) claims point to."""
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except (PyJWTError, RecursionError) as error:
        raise Unauthenticated from error
    iss, audience = claims.get("iss"), claims.get("aud")
    audiences = [audience] if isinstance(audience, str) else audience
    if not isinstance(iss, str) or not iss.isprintable() or not isinstance(audiences, list):
        raise Unauthenticated
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT issuer_id, workspace_id, audience, jwks_url, pinned_keys::text, subject_claim, "
            "subject_prefix, algorithms, scopes, scope_claim, speaks_for_user FROM accounts_find_issuers(%s)",
            [iss],
        )
        rows = [row for row in cursor.fetchall() if row[2] in audiences]
    # A token for two audiences that lead to two workspaces names neither.
    if len(rows) != 1:
        raise Unauthenticated
    return _as_issuer(rows[0])


def _as_issuer(row: tuple[Any, ...]) -> Issuer:
    values = list(row)
    values[4] = json.loads(values[4])
    return Issuer(*values)


def _verified(token: str, issuer: Issuer, algorithm: str, key_id: str | None) -> dict[str, Any]:
    candidates = keys.matching_keys(
        pinned=issuer.pinned_keys, jwks_url=issuer.jwks_url, key_id=key_id, algorithm=algorithm
    )
    # The row was found by it.
    iss = jwt.decode(token, options={"verify_signature": False})["iss"]
    return signed.verified_claims(
        token, issuer=iss, audience=issuer.audience, algorithm=algorithm, candidates=candidates
    )


def _scopes(issuer: Issuer, claims: dict[str, Any]) -> frozenset[str]:
    """The issuer's scopes, narrowed by its scope claim where one is named."""
    allowed = frozenset(issuer.scopes) & frozenset(SCOPES)
    if not issuer.scope_claim:
        return allowed
    named = claims.get(issuer.scope_claim)
    if isinstance(named, str):
        named = named.split()
    if not isinstance(named, list):
        return frozenset()
    return allowed & {name for name in named if isinstance(name, str)}
