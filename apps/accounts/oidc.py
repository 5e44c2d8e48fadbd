"""Staff sign-in through an OpenID Connect provider: it says who came, the platform who is staff.

The law of this module: nobody is let in on an answer that is not proven to be the provider's, for us, now and for this
browser (issuer, audience, expiry, signature, nonce, subject); nobody is made; no word, token or claim of the provider
reaches a page, a log or the session.
"""

import base64
import json
from typing import Any, Final
from urllib.parse import quote, urlencode

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import reverse

from apps.accounts.issuers import keys, signed
from apps.core import outbound

MAX_BYTES: Final = 64 * 1024
# OpenID Connect Core 1.0, 2 and 3.1.3.7.
REQUIRED: Final = (*signed.REQUIRED, "iat", "sub", "nonce")
# RFC 6749, 5.2: which of them it was tells an operator what to mend.
TOKEN_ERRORS: Final = frozenset(
    {
        "invalid_request",
        "invalid_client",
        "invalid_grant",
        "unauthorized_client",
        "unsupported_grant_type",
        "invalid_scope",
    }
)


class SignInRefused(Exception):
    """Nobody comes in. `code` says why, for logs; each subclass is what the person is told."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class NoAnswer(SignInRefused):
    """The provider was not reached, or failed."""


class NotTrusted(SignInRefused):
    """The provider, or what came in its name, did not prove what it had to."""


class NotStaff(SignInRefused):
    """The provider says who came, and that is no staff user of ours."""


class StaffOIDCBackend(ModelBackend):
    """Lets in the one active staff user with the e-mail address that the provider has verified; makes none."""

    def authenticate(  # type: ignore[override]
        self, request: HttpRequest, *, nonce: str, code_verifier: str
    ) -> User:
        """Who the provider says came back with this request. Raises SignInRefused.

        Its arguments keep it apart: the password form has none of them, so a code in that form's address does
        nothing, and no failure here is one that locks a name for passwords.
        """
        redirect_uri = request.build_absolute_uri(reverse("oidc_authentication_callback"))
        tokens = _tokens(request.GET["code"], redirect_uri, code_verifier)
        subject = _subject(tokens.get("id_token"), nonce)
        return _staff_user(_claims(tokens.get("access_token"), subject))


def _tokens(code: str, redirect_uri: str, code_verifier: str) -> dict[str, Any]:
    """What the provider gives for a code."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect_uri,
        "code_verifier": code_verifier,
    }
    name, secret = settings.OIDC_RP_CLIENT_ID, settings.OIDC_RP_CLIENT_SECRET
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    if secret and settings.OIDC_TOKEN_USE_BASIC_AUTH:
        # Both are form-encoded first (RFC 6749, 2.3.1).
        pair = f"{quote(name, safe='')}:{quote(secret, safe='')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        form["client_id"] = name
        if secret:
            form["client_secret"] = secret
    answer = _ask("POST", settings.OIDC_OP_TOKEN_ENDPOINT, headers, urlencode(form).encode())
    if answer.status != 200:
        error = _document(answer).get("error")
        raise NotTrusted(f"token_{error}" if error in TOKEN_ERRORS else "token_refused")
    return _document(answer)


def _subject(token: Any, nonce: str) -> str:
    """Whom an ID token names, after it was proven to be the provider's, for us, now and for this browser."""
    if not isinstance(token, str):
        raise NotTrusted("no_id_token")
    try:
        algorithm, key_id = signed.header(token)
        if algorithm != settings.OIDC_RP_SIGN_ALGO:
            raise NotTrusted("wrong_algorithm")
        claims = signed.verified_claims(
            token,
            issuer=settings.OIDC_OP_ISSUER,
            audience=settings.OIDC_RP_CLIENT_ID,
            algorithm=algorithm,
            candidates=keys.matching_keys(
                pinned=[], jwks_url=settings.OIDC_OP_JWKS_ENDPOINT, key_id=key_id, algorithm=algorithm
            ),
            required=REQUIRED,
        )
    except signed.InvalidToken as error:
        raise NotTrusted(error.code) from error
    if claims["nonce"] != nonce:
        raise NotTrusted("wrong_nonce")
    several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if claims.get("azp", None if several else settings.OIDC_RP_CLIENT_ID) != settings.OIDC_RP_CLIENT_ID:
        raise NotTrusted("wrong_party")
    return str(claims["sub"])


def _claims(access_token: Any, subject: str) -> dict[str, Any]:
    """What the provider says of the subject, and of nobody else."""
    if not isinstance(access_token, str) or not access_token.isascii() or not access_token.isprintable():
        raise NotTrusted("no_access_token")
    headers = {"Authorization": f"Bearer {access_token}", "Accept": "application/json"}
    answer = _ask("GET", settings.OIDC_OP_USER_ENDPOINT, headers)
    if answer.status != 200:
        raise NotTrusted("claims_refused")
    claims = _document(answer)
    # Otherwise the claims of another person could stand beside a good ID token (Core 1.0, 5.3.2).
    if claims.get("sub") != subject:
        raise NotTrusted("wrong_subject")
    return claims


def _staff_user(claims: dict[str, Any]) -> User:
    address = claims.get("email")
    if claims.get("email_verified") is not True or not isinstance(address, str) or not address:
        raise NotStaff("address_not_verified")
    found = User.objects.filter(email__iexact=address, is_active=True, is_staff=True)
    # The database folds letters that only look alike, such as a dotless i, to one capital.
    same = [user for user in found if user.email.lower() == address.lower()]
    if len(same) != 1:
        raise NotStaff("several_accounts" if same else "no_account")
    return same[0]


def _ask(method: str, url: str, headers: dict[str, str], content: bytes | None = None) -> outbound.Answer:
    try:
        answer = outbound.request(method, url, content=content, headers=headers, max_bytes=MAX_BYTES)
    except (outbound.OutboundRefused, outbound.OutboundFailed) as error:
        raise NoAnswer(error.code) from error
    if answer.status >= 500:
        raise NoAnswer("provider_failed")
    return answer


def _document(answer: outbound.Answer) -> dict[str, Any]:
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise NotTrusted("not_json") from error
    if not isinstance(document, dict):
        raise NotTrusted("not_json")
    return document
