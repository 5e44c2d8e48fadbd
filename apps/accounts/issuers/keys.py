"""Public keys of issuers: pinned ones, or a key set (JWKS) that is fetched and kept for a while.

A fetched set lives `FRESH` seconds. An unknown key id asks again, at most every `COOLDOWN` seconds an address,
so that invented ids cannot make the platform hammer the issuer. When the issuer does not answer, the last set is
good for `STALE` seconds more.
"""

import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Final

import structlog
from jwt import PyJWK
from jwt.exceptions import PyJWTError

from apps.core import outbound

FRESH: Final = 300.0
COOLDOWN: Final = 30.0
STALE: Final = 3600.0
MAX_BYTES: Final = 64 * 1024
MAX_KEYS: Final = 32
MIN_RSA_BITS: Final = 2048

# Asymmetric alone: with a shared secret the issuer's public key could sign.
ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
)
FAMILIES: Final = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
PRIVATE_MEMBERS: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})

log = structlog.get_logger(__name__)


class UnusableKey(ValueError):
    """A JWK that may not be used: private, symmetric, weak or malformed."""


@dataclass
class _Entry:
    keys: list[dict[str, Any]] = field(default_factory=list)
    fetched_at: float | None = None
    tried_at: float | None = None


_cache: dict[str, _Entry] = {}
_lock = threading.Lock()


def forget() -> None:
    """Empty the cache of this process (tests, a changed issuer)."""
    with _lock:
        _cache.clear()


def matching_keys(
    *, pinned: list[dict[str, Any]], jwks_url: str, key_id: str | None, algorithm: str
) -> list[Any]:
    """Public keys of the issuer that may have signed: of this id if one is named, and fit for the algorithm."""
    if pinned:
        return _fit(pinned, key_id, algorithm)
    if not jwks_url:
        return []
    found = _fit(_key_set(jwks_url, again=False), key_id, algorithm)
    return found or _fit(_key_set(jwks_url, again=True), key_id, algorithm)


def check_key(jwk: Any) -> None:
    """Raises UnusableKey for a JWK that may not be pinned."""
    if not isinstance(jwk, dict) or PRIVATE_MEMBERS & jwk.keys():
        raise UnusableKey("A pinned key is a public JWK.")
    family = jwk.get("kty")
    algorithm = jwk.get("alg") or {"RSA": "RS256", "EC": _curve_algorithm(jwk), "OKP": "EdDSA"}.get(
        str(family)
    )
    if algorithm not in ALGORITHMS or _load(jwk, str(algorithm)) is None:
        raise UnusableKey("A pinned key is an RSA (2048 bits or more), EC or Ed25519 key.")


def _curve_algorithm(jwk: dict[str, Any]) -> str | None:
    return {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}.get(str(jwk.get("crv")))


def _fit(keys: list[dict[str, Any]], key_id: str | None, algorithm: str) -> list[Any]:
    found = []
    for jwk in keys:
        if key_id is not None and jwk.get("kid") != key_id:
            continue
        if jwk.get("kty") != FAMILIES[algorithm[:2]] or jwk.get("use", "sig") != "sig":
            continue
        if jwk.get("alg", algorithm) != algorithm:
            continue
        key = _load(jwk, algorithm)
        if key is not None:
            found.append(key)
    return found


def _load(jwk: dict[str, Any], algorithm: str) -> Any:
    """The key object, or None where the JWK is malformed, private or too weak."""
    if PRIVATE_MEMBERS & jwk.keys():
        return None
    try:
        key = PyJWK(jwk, algorithm=algorithm).key
    except (PyJWTError, ValueError, TypeError, KeyError):
        return None
    bits = getattr(key, "key_size", MIN_RSA_BITS)
    return None if jwk.get("kty") == "RSA" and bits < MIN_RSA_BITS else key


def _key_set(url: str, *, again: bool) -> list[dict[str, Any]]:
    """The key set of an address; `again` asks the issuer although a fresh set is there."""
    now = time.monotonic()
    with _lock:
        entry = _cache.setdefault(url, _Entry())
        fresh = entry.fetched_at is not None and now - entry.fetched_at < FRESH
        cooling = entry.tried_at is not None and now - entry.tried_at < COOLDOWN
        if cooling or (fresh and not again):
            return _usable(entry, now)
        # Others go on with what is there while this thread asks.
        entry.tried_at = now
    keys = _fetch(url)
    with _lock:
        if keys is not None:
            entry.keys, entry.fetched_at = keys, now
        return _usable(entry, now)


def _usable(entry: _Entry, now: float) -> list[dict[str, Any]]:
    if entry.fetched_at is None or now - entry.fetched_at > FRESH + STALE:
        return []
    return entry.keys


def _fetch(url: str) -> list[dict[str, Any]] | None:
    try:
        answer = outbound.request("GET", url, headers={"Accept": "application/json"}, max_bytes=MAX_BYTES)
    except (outbound.OutboundRefused, outbound.OutboundFailed) as error:
        log.warning("issuer_keys_not_fetched", code=error.code)
        return None
    try:
        keys = json.loads(answer.body)["keys"] if answer.status == 200 else None
    except (ValueError, KeyError, TypeError, RecursionError):
        keys = None
    if not isinstance(keys, list):
        log.warning("issuer_keys_not_fetched", code="not_a_key_set")
        return None
    return [key for key in keys[:MAX_KEYS] if isinstance(key, dict)]
