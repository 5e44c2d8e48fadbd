"""Keyed fingerprints of queries.

The principal's id is part of what is fingerprinted, so that the same query of two people cannot be linked. Rotation
adds a key; a fingerprint under an unknown key is kept and compared with nothing.
"""

import hashlib
import hmac
from dataclasses import dataclass

from django.conf import settings

from apps.core import canonical
from apps.core.text import nfc, trim
from apps.observations.constants import KEY_CHARACTERS

FORM = "nfc-trim-v1"
VERSION = f"hmac-sha256:{FORM}"


@dataclass(frozen=True, slots=True, repr=False)
class Key:
    """A key by its id. Never shown, not even in a traceback."""

    id: str
    secret: str


def active_key() -> Key | None:
    """The key that writes; None where there is none or it is too short."""
    name = settings.OBSERVATION_HMAC_ACTIVE_KEY
    secret = settings.OBSERVATION_HMAC_KEYS.get(name, "")
    return Key(name, secret) if len(secret) >= KEY_CHARACTERS else None


def is_linkable(key_id: str) -> bool:
    """Whether fingerprints under this key can still be compared."""
    return key_id in settings.OBSERVATION_HMAC_KEYS


def normal(query: str) -> str:
    """The query as fingerprints and exports compare it: NFC, trimmed; case is kept."""
    return trim(nfc(query))


def fingerprint(key: Key, principal: str, query: str) -> str:
    """HMAC-SHA256 over compact JSON of form, principal and normal query; 64 lower hex digits."""
    message = canonical.dumps([FORM, principal, normal(query)])
    return hmac.new(key.secret.encode(), message, hashlib.sha256).hexdigest()
