"""Identifiers: UUIDv7, so that rows sort by their time of making."""

from uuid import UUID

from uuid_utils.compat import uuid7 as _uuid7


def uuid7() -> UUID:
    """A new time-ordered UUID (RFC 9562, version 7)."""
    return _uuid7()
