"""Subjects: the names under which a workspace knows its principals."""

import re
from typing import Any
from uuid import UUID

from django.db import connection

from apps.accounts.models import SHARED_SUBJECT, new_hash_key
from apps.core.db.identity import PrincipalIdentity
from apps.core.ids import uuid7
from apps.core.problems import InvalidRequest, NotFound

TOKEN_KIND = "token:"
MAX_LENGTH = 512
# Ends with a mark, so that no two prefixes and claims make one subject by running into each other.
PREFIX = re.compile(r"[a-z][a-z0-9-]*:([^\s]*[#:/])?")


def parse(text: str) -> str:
    """A subject as commands take it: a bare word P is `token:P`, `shared` is the shared principal.

    Raises InvalidRequest for what cannot be a subject.
    """
    subject = text if ":" in text or text == SHARED_SUBJECT else TOKEN_KIND + text
    if not text or text != text.strip() or not _sayable(subject):
        raise InvalidRequest(f"A principal is a name of at most {MAX_LENGTH} characters.")
    return subject


def check_prefix(prefix: str) -> None:
    """Raises InvalidRequest where an issuer's prefix could name somebody else's principals."""
    if not PREFIX.fullmatch(prefix) or prefix.startswith(TOKEN_KIND):
        raise InvalidRequest(
            "A prefix is a kind and a colon, with an optional part that ends in # : or /; e.g. oidc:login#",
            pointer="/subject_prefix",
        )


def of_claim(prefix: str, claim: Any) -> str | None:
    """The subject that a verified claim names, or None where it names nobody."""
    if isinstance(claim, int) and not isinstance(claim, bool):
        claim = str(claim)
    if not isinstance(claim, str) or not claim:
        return None
    subject = prefix + claim
    return subject if _sayable(subject) and subject != SHARED_SUBJECT else None


def _sayable(subject: str) -> bool:
    return len(subject) <= MAX_LENGTH and subject.isprintable() and subject == subject.strip()


def enter(workspace: UUID, subject: str) -> PrincipalIdentity:
    """The identity of a subject, made at first sight; outside of any session. NotFound when disabled."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT principal_id, workspace_id, shared_principal_id "
            "FROM accounts_enter_principal(%s, %s, %s, %s)",
            [workspace, subject, uuid7(), new_hash_key()],
        )
        row = cursor.fetchone()
    if row is None:
        raise NotFound(code="unknown_principal")
    return PrincipalIdentity(*row)
