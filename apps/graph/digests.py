"""Digests of nodes: SHA-256 over the RFC 8785 array of what makes a node the same node."""

import hashlib
import re
import unicodedata
from typing import Any

from apps.core import canonical

DIGEST_VERSION = 3
"""Of the rule below; a node keeps the one that its digest was made by."""

_WHITE = re.compile(r"\s+")


def norm(text: str) -> str:
    """NFKC, casefold, white space runs to one blank, trimmed."""
    return _WHITE.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()


def claim_digest(subkind: str, label: str, body: str) -> str:
    """Digest of a claim (but of subkind `entity`, which goes by its entity key)."""
    return canonical.checksum(["episodic", subkind, norm(label), norm(body)])


def passage_text(title: str, body: str) -> str:
    """The text of a passage that is indexed, embedded and hashed: title, blank line, body."""
    return f"{title}\n\n{body}" if title else body


def passage_digest(*, repo: str, type: str, identity: Any, part: int, text: str) -> str:
    """Digest of a passage: its place, and the hash of its text (`passage_text`)."""
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return canonical.checksum(["passage", repo, type, identity, part, sha256])
