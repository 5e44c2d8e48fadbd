"""Bulk import: the next group is read and analysed while the database stores the last one."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from uuid import UUID

from django.db import connection

from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session

from .items import PassageItem
from .passages import GROUP, Batch, prepare_passages, write_prepared

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
    for owner, batch in _prepared_ahead(_by_owner(documents)):
        if owner not in principals:
            principals[owner] = principal_of(owner)
        with principal_session(principals[owner]):
            results = write_prepared(batch=batch)
        counts.update(result.result for result in results)
        if progress:
            progress(len(results))
    return counts, {identity.principal_id: identity for identity in principals.values()}


def _prepared_ahead(
    groups: Iterable[tuple[str | None, list[PassageItem]]],
) -> Iterator[tuple[str | None, Batch]]:
    """Each group prepared, one ahead of whoever writes: that one waits for the database most of the time."""
    context = copy_context()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="import") as worker:
        ahead: tuple[str | None, Future[Batch]] | None = None
        for owner, group in groups:
            following = owner, worker.submit(context.run, _prepare, group)
            if ahead:
                yield ahead[0], ahead[1].result()
            ahead = following
        if ahead:
            yield ahead[0], ahead[1].result()


def _prepare(group: list[PassageItem]) -> Batch:
    try:
        return prepare_passages(group, analyse=True)
    finally:
        # Unknown words were looked up through a connection of this thread.
        connection.close()


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
