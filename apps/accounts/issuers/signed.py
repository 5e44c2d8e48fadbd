"""Whether a JWT was signed for us, now, by somebody whose keys we know."""

from typing import Any

import jwt
from jwt.exceptions import (
    ExpiredSignatureError,
    InvalidAudienceError,
    InvalidIssuerError,
    InvalidSignatureError,
    MissingRequiredClaimError,
    PyJWTError,
)

from apps.accounts.issuers import keys

LEEWAY_SECONDS = 30
# The fewest registered claims that make a JWT one for us, now, by somebody we know.
REQUIRED = ("iss", "aud", "exp")
# What an operator is told; everything else is `malformed`.
_CODES: dict[type[PyJWTError], str] = {
    ExpiredSignatureError: "expired",
    InvalidAudienceError: "wrong_audience",
    InvalidIssuerError: "wrong_issuer",
    InvalidSignatureError: "wrong_signature",
    MissingRequiredClaimError: "claim_missing",
}


class InvalidToken(Exception):
    """A JWT that says nothing to us. `code` says why, for logs: nothing of the token is in it."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def header(token: str) -> tuple[str, str | None]:
    """The algorithm, one of `keys.ALGORITHMS`, and the key id where one is named. Raises InvalidToken."""
    try:
        found = jwt.get_unverified_header(token)
    except PyJWTError as error:
        raise InvalidToken("malformed") from error
    algorithm, key_id = found.get("alg"), found.get("kid")
    if algorithm not in keys.ALGORITHMS:
        raise InvalidToken("wrong_algorithm")
    if not (key_id is None or isinstance(key_id, str)):
        raise InvalidToken("malformed")
    return str(algorithm), key_id


def verified_claims(
    token: str,
    *,
    issuer: str,
    audience: str,
    algorithm: str,
    candidates: list[Any],
    required: tuple[str, ...] = REQUIRED,
) -> dict[str, Any]:
    """The claims of a JWT that one of the candidate keys signed. Raises InvalidToken."""
    refused = InvalidToken("no_key")
    for key in candidates:
        try:
            return jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=audience,
                issuer=issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": list(required)},
            )
        except (PyJWTError, RecursionError) as error:
            refused = InvalidToken(_CODES.get(type(error), "malformed"))  # type: ignore[arg-type]
    raise refused
