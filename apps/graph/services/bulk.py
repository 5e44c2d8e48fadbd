"""Bulk import: the next group is read and prepared by whoever calls, each group is a transaction of its own."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from uuid import UUID

from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session

from .items import PassageItem
from .passages import GROUP, write_passages

Progress = Callable[[int], None]


def import_passages(
    *,
    documents: Iterable[tuple[str | None, PassageItem]],
    principal_of: Callable[[str | None], PrincipalIdentity],
    progress: Progress | None = None,
) -> tuple[Counter[str], dict[UUID, PrincipalIdentity]]:
    """Store (owner name, item) pairs, for each owner in its own session, in groups of `GROUP`.

    Returns counts by result and the principals written to. What was committed stays when a later group fails;
    the same import again goes on from there.
    """
    counts: Counter[str] = Counter()
    principals: dict[str | None, PrincipalIdentity] = {}
    for owner, group in _by_owner(documents):
        if owner not in principals:
            principals[owner] = principal_of(owner)
        with principal_session(principals[owner]):
            results = write_passages(items=group)
        counts.update(result.result for result in results)
        if progress:
            progress(len(group))
    return counts, {identity.principal_id: identity for identity in principals.values()}


def _by_owner(
    documents: Iterable[tuple[str | None, PassageItem]],
) -> Iterator[tuple[str | None, list[PassageItem]]]:
    """Groups of one owner each. At most a group an owner waits in memory."""
    waiting: dict[str | None, list[PassageItem]] = defaultdict(list)
    for owner, item in documents:
        group = waiting[owner]
        group.append(item)
        if len(group) == GROUP:
            yield owner, group
            waiting[owner] = []
    for owner, group in waiting.items():
        if group:
            yield owner, group
