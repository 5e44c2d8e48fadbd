"""Canonical JSON (RFC 8785) and checksums over it."""

import hashlib
from typing import Any

import rfc8785


def dumps(value: Any) -> bytes:
    """Canonical bytes of a JSON value. Raises `rfc8785.CanonicalizationError` for what JSON cannot hold."""
    return rfc8785.dumps(value)


def checksum(value: Any) -> str:
    """SHA-256 of the canonical bytes, 64 lower hex digits."""
    return hashlib.sha256(dumps(value)).hexdigest()
