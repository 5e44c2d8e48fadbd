"""Identity of a query, and of the group in which repetitions and paraphrases count once."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence

from apps.learning.exceptions import ConflictingIdentity, LearningInputError, UnknownReference


def query_group_id(identity: str) -> str:
    """Group of a query that nobody named: `identity` is the normalised text, or its keyed hash."""
    return _group_id("query", identity)


def named_group_id(name: str) -> str:
    """Group that a caller named for paraphrases."""
    return _group_id("explicit", name)


def _group_id(kind: str, value: str) -> str:
    # The separator and the unescaped characters are those of the reference, whose group ids these are.
    return hashlib.sha256(json.dumps([kind, value], ensure_ascii=False).encode()).hexdigest()


def names_by_query(names: Mapping[str, str], identities: Mapping[str, str]) -> dict[str, str]:
    """Group name by query identity, from request id → name and request id → query identity.

    A name given to one receipt covers every receipt of the same query. Raises UnknownReference for an unknown
    request, LearningInputError for a blank name and ConflictingIdentity for two names of one query.
    """
    named: dict[str, str] = {}
    for request_id, name in sorted(names.items()):
        if request_id not in identities:
            raise UnknownReference("a query group names an unknown request")
        if not name.strip():
            raise LearningInputError("a query group has a blank name")
        if named.setdefault(identities[request_id], name) != name:
            raise ConflictingIdentity("one query has two group names")
    return named


def group_ids(identities: Iterable[str], named: Mapping[str, str]) -> list[str]:
    """Group id of each query identity, in their order."""
    cache: dict[str, str] = {}
    groups = []
    for identity in identities:
        group = cache.get(identity)
        if group is None:
            name = named.get(identity)
            group = query_group_id(identity) if name is None else named_group_id(name)
            cache[identity] = group
        groups.append(group)
    return groups


def scope_key(scopes: Sequence[str] | None) -> tuple[str, ...] | None:
    """Sorted distinct scopes; None means unfiltered and equals only None."""
    return None if scopes is None else tuple(sorted(set(scopes)))
