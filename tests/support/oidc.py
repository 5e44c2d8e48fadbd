"""An OpenID provider on this machine, as OpenID Connect Core 1.0 and RFC 6749, 7636 want one to be.

It serves discovery, keys, authorization, tokens and claims over https, and refuses what a provider has to refuse: an
unknown client or redirect address, a second use of a code, another verifier than the challenge was made of. Somebody
is always signed in there (`person`), so that authorization answers at once. Tests spoil its answers by the fields.
"""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from apps.accounts.issuers import keys
from apps.accounts.sign_in import OIDC_BACKEND
from tests.support.tls import https_server

REALM = "/realms/acme"
CODE_SECONDS = 60
TOKEN_SECONDS = 300
FORM = "application/x-www-form-urlencoded"


def make_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@cache
def usual_key() -> rsa.RSAPrivateKey:
    """One for all providers of a process: making one takes a while."""
    return make_key()


@dataclass
class Grant:
    """What a code stands for, until it is used once."""

    redirect_uri: str
    nonce: str | None
    challenge: str | None
    expires_at: float


@dataclass
class Provider:
    client_id: str = "memory"
    client_secret: str = "provider/secret+with signs"
    redirect_uris: set[str] = field(default_factory=set)
    person: dict[str, Any] = field(
        default_factory=lambda: {"sub": "ann-4711", "email": "ann@example.org", "email_verified": True}
    )
    url: str = ""
    authority: Path = Path()
    key: rsa.RSAPrivateKey = field(default_factory=usual_key)
    key_id: str = "key-1"

    # What a test spoils.
    id_claims: dict[str, Any] = field(default_factory=dict)
    """Members of the ID token in place of the right ones; None leaves one out."""
    user_claims: dict[str, Any] = field(default_factory=dict)
    """Members of the claims in place of the person's."""
    description: dict[str, Any] = field(default_factory=dict)
    """Members of the discovery document in place of the right ones; None leaves one out."""
    id_token: str | None = None
    """An ID token in place of the right one."""
    signed_by: rsa.RSAPrivateKey | None = None
    declines: str = ""
    """The error with which authorization answers."""
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    """Endpoint (`token`, `certs`, `userinfo`) to a status and body in place of the right answer."""
    hangs: set[str] = field(default_factory=set)
    """Endpoints that send nothing until the provider ends."""

    # What a test reads.
    asked: list[str] = field(default_factory=list)
    """Endpoints, in the order of the calls."""
    secrets: set[str] = field(default_factory=set)
    """All that it handed out and nobody may log."""
    client_authentication: list[str] = field(default_factory=list)
    _grants: dict[str, Grant] = field(default_factory=dict)
    _access: set[str] = field(default_factory=set)
    _ended: threading.Event = field(default_factory=threading.Event)

    @property
    def issuer(self) -> str:
        return f"{self.url}{REALM}"

    def endpoint(self, name: str) -> str:
        return f"{self.issuer}/protocol/openid-connect/{name}"

    def discovery(self) -> dict[str, Any]:
        right = {
            "issuer": self.issuer,
            "authorization_endpoint": self.endpoint("auth"),
            "token_endpoint": self.endpoint("token"),
            "userinfo_endpoint": self.endpoint("userinfo"),
            "jwks_uri": self.endpoint("certs"),
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        }
        return {name: value for name, value in (right | self.description).items() if value is not None}

    def keys(self) -> dict[str, Any]:
        jwk: dict[str, Any] = RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {"keys": [{**jwk, "kid": self.key_id, "use": "sig", "alg": "RS256"}]}

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(request.path)
        name = parts.path.rpartition("/")[2]
        body = request.rfile.read(int(request.headers.get("Content-Length", 0))).decode()
        self.asked.append(name)
        if name in self.hangs:
            self._ended.wait()
            return
        if name in self.answers:
            _send(request, *self.answers[name])
        elif parts.path == f"{REALM}/.well-known/openid-configuration":
            _json(request, 200, self.discovery())
        elif name == "certs":
            _json(request, 200, self.keys())
        elif name == "auth" and request.command == "GET":
            self._authorize(request, parts.query)
        elif name == "token" and request.command == "POST":
            self._exchange(request, body)
        elif name == "userinfo":
            self._claims(request)
        else:
            _json(request, 404, {"error": "not_found"})

    def end(self) -> None:
        self._ended.set()

    def _authorize(self, request: BaseHTTPRequestHandler, query: str) -> None:
        asked = _form(query)
        back = asked.get("redirect_uri", "")
        if asked.get("client_id") != self.client_id or back not in self.redirect_uris:
            # Never a redirect to an address that is not registered (RFC 6749, 4.1.2.1).
            _json(request, 400, {"error": "invalid_request"})
            return
        told = {"state": asked["state"]} if "state" in asked else {}
        wrong = self.declines or _wrong_request(asked)
        if wrong:
            _redirect(request, f"{back}?{urlencode({'error': wrong, 'error_description': 'no', **told})}")
            return
        code = self._secret()
        self._grants[code] = Grant(
            back, asked.get("nonce"), asked.get("code_challenge"), time.monotonic() + CODE_SECONDS
        )
        self.secrets |= {asked["state"], asked.get("nonce", code)}
        _redirect(request, f"{back}?{urlencode({'code': code, **told})}")

    def _exchange(self, request: BaseHTTPRequestHandler, body: str) -> None:
        asked = _form(body) if request.headers.get_content_type() == FORM else {}
        if not self._is_client(request, asked):
            _json(request, 401, {"error": "invalid_client"})
            return
        if asked.get("grant_type") != "authorization_code":
            _json(request, 400, {"error": "unsupported_grant_type"})
            return
        grant = self._grants.pop(asked.get("code", ""), None)
        if grant is None or not _fits(grant, asked):
            _json(request, 400, {"error": "invalid_grant"})
            return
        access = self._secret()
        self._access.add(access)
        id_token = self.id_token if self.id_token is not None else self._sign(grant.nonce)
        self.secrets.add(id_token)
        _json(
            request,
            200,
            {
                "access_token": access,
                "token_type": "Bearer",
                "expires_in": TOKEN_SECONDS,
                "id_token": id_token,
            },
        )

    def _is_client(self, request: BaseHTTPRequestHandler, asked: dict[str, str]) -> bool:
        """By client_secret_basic or client_secret_post, never both (RFC 6749, 2.3)."""
        scheme, _, told = request.headers.get("Authorization", "").partition(" ")
        if scheme:
            self.client_authentication.append("basic")
            name, _, secret = base64.b64decode(told).decode().partition(":")
            given = (unquote_plus(name), unquote_plus(secret))
            return scheme == "Basic" and "client_secret" not in asked and given == self._client()
        self.client_authentication.append("post")
        return (asked.get("client_id"), asked.get("client_secret")) == self._client()

    def _client(self) -> tuple[str, str]:
        return self.client_id, self.client_secret

    def _sign(self, nonce: str | None) -> str:
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": self.client_id,
            "sub": self.person["sub"],
            "iat": now,
            "exp": now + TOKEN_SECONDS,
            "nonce": nonce,
        }
        claims = {name: value for name, value in (claims | self.id_claims).items() if value is not None}
        return jwt.encode(claims, self.signed_by or self.key, "RS256", headers={"kid": self.key_id})

    def _claims(self, request: BaseHTTPRequestHandler) -> None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or token not in self._access:
            _json(request, 401, {"error": "invalid_token"})
            return
        _json(request, 200, self.person | self.user_claims)

    def _secret(self) -> str:
        made = secrets.token_urlsafe(24)
        self.secrets.add(made)
        return made


def _form(text: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(text).items() if len(values) == 1}


def _wrong_request(asked: dict[str, str]) -> str:
    """The error of an authorization request, or nothing."""
    if asked.get("response_type") != "code":
        return "unsupported_response_type"
    if "openid" not in asked.get("scope", "").split():
        return "invalid_scope"
    if "state" not in asked:
        return "invalid_request"
    if "code_challenge" in asked and asked.get("code_challenge_method") != "S256":
        return "invalid_request"
    return ""


def _fits(grant: Grant, asked: dict[str, str]) -> bool:
    """Whether who brings the code is who asked for it: address, verifier, in time."""
    if asked.get("redirect_uri") != grant.redirect_uri or time.monotonic() > grant.expires_at:
        return False
    verifier = asked.get("code_verifier")
    if grant.challenge is None:
        return verifier is None
    digest = hashlib.sha256((verifier or "").encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == grant.challenge


def _json(request: BaseHTTPRequestHandler, status: int, document: Any) -> None:
    _send(request, status, json.dumps(document).encode())


def _send(request: BaseHTTPRequestHandler, status: int, body: bytes) -> None:
    request.send_response(status)
    request.send_header("Content-Type", "application/json")
    request.send_header("Cache-Control", "no-store")
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


def _redirect(request: BaseHTTPRequestHandler, location: str) -> None:
    request.send_response(302)
    request.send_header("Location", location)
    request.send_header("Content-Length", "0")
    request.end_headers()


@contextmanager
def openid_provider(folder: Path) -> Iterator[Provider]:
    """A provider that answers, with a client `memory` and no redirect address registered yet."""
    provider = Provider()
    with https_server(folder, provider.answer) as (address, authority):
        provider.url, provider.authority = address, authority
        try:
            yield provider
        finally:
            # Before the server waits for its threads.
            provider.end()


@contextmanager
def provider_of_the_platform(
    folder: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Provider]:
    """A provider, and the platform of this process set up for it as the environment would. The redirect address of
    the platform is yet to be registered."""
    keys.forget()
    with openid_provider(folder) as provider:
        monkeypatch.setenv("SSL_CERT_FILE", str(provider.authority))
        settings.OUTBOUND_PRIVATE_HOSTS = {"localhost"}
        settings.ROOT_URLCONF = "tests.support.oidc_urls"
        settings.AUTHENTICATION_BACKENDS = [*settings.AUTHENTICATION_BACKENDS, OIDC_BACKEND]
        settings.OIDC_ENABLED = True
        settings.OIDC_OP_ISSUER = provider.issuer
        settings.OIDC_OP_AUTHORIZATION_ENDPOINT = provider.endpoint("auth")
        settings.OIDC_OP_TOKEN_ENDPOINT = provider.endpoint("token")
        settings.OIDC_OP_USER_ENDPOINT = provider.endpoint("userinfo")
        settings.OIDC_OP_JWKS_ENDPOINT = provider.endpoint("certs")
        settings.OIDC_RP_CLIENT_ID = provider.client_id
        settings.OIDC_RP_CLIENT_SECRET = provider.client_secret
        settings.OIDC_RP_SIGN_ALGO = "RS256"
        settings.OIDC_RP_SCOPES = "openid email"
        settings.OIDC_TOKEN_USE_BASIC_AUTH = False
        settings.OIDC_USE_PKCE = True
        yield provider
