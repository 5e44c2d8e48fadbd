"""Identities of queries: which two wordings are one query, in clear and under a principal's key."""

import hashlib
import hmac
import unicodedata


def normalise_query(text: str) -> str:
    """NFKC, then case folding, then runs of white space to one space, trimmed."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def keyed_query_identity(text: str, key: bytes) -> str:
    """HMAC-SHA-256 of the normalised query under the principal's key, 64 lower hex digits.

    A native receipt keeps this, because the text may be erased before the receipt is.
    """
    return hmac.new(key, normalise_query(text).encode(), hashlib.sha256).hexdigest()
