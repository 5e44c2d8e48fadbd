"""Source identity: which *version* of what a row is, as a hash that outlives chunks, vectors and node ids.

`source_id` is "s:" and the SHA-256 of a JSON object with exactly five members in this order: repo, type, identity,
version, content_source; no white space, values as RFC 8785 writes them. This is a reference format and keeps its own
member order. Mode, node id, vector, title and labels never enter it. What is missing stays missing: an identity is
never guessed.
"""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

UNAVAILABLE = "canonical_identity_unavailable"
LIVE_UNAVAILABLE = "live_version_unavailable"

MEMORY_REPO, MEMORY_NODE = "memory", "memory_node"
CONNECTION_PREFIX = "conn:"
INDEX, LIVE, MEMORY = "index", "github_live", "memory"

MAX_SAFE_INTEGER = 2**53 - 1
LONGEST_KEY = 512
"""Characters of a connection's own key of a document."""

_CONTENT_HASH = re.compile(r"sha256:[0-9a-f]{64}")


class ProvenanceLike(Protocol):
    """Where a row came from, as far as it says so."""

    @property
    def repo(self) -> str | None: ...
    @property
    def type(self) -> str | None: ...
    @property
    def identity(self) -> Any: ...
    @property
    def version(self) -> str | None: ...
    @property
    def content_source(self) -> str: ...


class Unresolved(Exception):
    """A row has no canonical identity; `reason` is a code that the answer shows."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class SourceIdentity:
    """The five members, checked."""

    repo: str
    type: str
    identity: Any
    version: str
    content_source: str

    def document(self) -> dict[str, Any]:
        """The members in the order of the format."""
        return {
            "repo": self.repo,
            "type": self.type,
            "identity": self.identity,
            "version": self.version,
            "content_source": self.content_source,
        }

    @property
    def source_id(self) -> str:
        # Texts and whole numbers are all there is in it, and those the standard library writes as RFC 8785 does.
        text = json.dumps(self.document(), ensure_ascii=False, separators=(",", ":"))
        return "s:" + hashlib.sha256(text.encode()).hexdigest()


def identify(provenance: ProvenanceLike) -> SourceIdentity:
    """The identity of a row. Raises Unresolved where a part is missing or not one of its type."""
    repo, kind, version = provenance.repo, provenance.type, provenance.version
    if not repo or not kind or kind not in _CONDITIONS:
        raise Unresolved(UNAVAILABLE)
    identity = _listed(provenance.identity)
    if not _CONDITIONS[kind](identity) or not _of_place(kind, repo):
        raise Unresolved(UNAVAILABLE)
    if provenance.content_source == LIVE:
        if kind not in LIVE_TYPES or not version or not _CONTENT_HASH.fullmatch(version):
            raise Unresolved(LIVE_UNAVAILABLE)
    elif not _is_stored_version(kind, provenance.content_source, version):
        raise Unresolved(UNAVAILABLE)
    assert version is not None
    return SourceIdentity(repo, kind, identity, version, provenance.content_source)


def is_identifiable(provenance: ProvenanceLike) -> bool:
    try:
        identify(provenance)
    except Unresolved:
        return False
    return True


def content_version(text: str) -> str:
    """The version of a text that is known by its content alone."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def memory_version(label: str, body: str) -> str:
    """The version of a claim or code node: reinforcing keeps it, rewording changes it."""
    return content_version(f"{label}\n{body}")


def _listed(identity: Any) -> Any:
    return list(identity) if isinstance(identity, tuple) else identity


def _of_place(kind: str, repo: str) -> bool:
    """Documents name their connection, nodes the memory; all other types a repository."""
    if kind == MEMORY_NODE:
        return repo == MEMORY_REPO
    return (kind == "document") == repo.startswith(CONNECTION_PREFIX) and repo != MEMORY_REPO


def _is_stored_version(kind: str, content_source: str, version: str | None) -> bool:
    if not isinstance(version, str) or not version:
        return False
    if kind == MEMORY_NODE:
        return content_source == MEMORY and _CONTENT_HASH.fullmatch(version) is not None
    return content_source == INDEX


def _number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_SAFE_INTEGER


def _name(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_name, value))


def _key(value: Any) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= LONGEST_KEY


def _uuid(value: Any) -> bool:
    try:
        return isinstance(value, str) and str(UUID(value)) == value
    except ValueError:
        return False


_CONDITIONS: dict[str, Callable[[Any], bool]] = {
    "issue": _number,
    "pull_request": _number,
    "release": _name,
    "doc": _name,
    "wiki_doc": _name,
    "diff": _pair,
    "issue_comment": _number,
    "pr_review_comment": _number,
    "pr_review": _number,
    "document": _key,
    MEMORY_NODE: _uuid,
}
LIVE_TYPES = frozenset({"doc", "wiki_doc"})
TYPES = tuple(_CONDITIONS)
