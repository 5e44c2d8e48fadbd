"""Writing and deleting passages, in groups, with everything that hangs on them in the same transaction."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import current_principal
from apps.core.ids import uuid7
from apps.graph.analyser import ANALYSER, Analysed, installed
from apps.graph.locks import lock_owner
from apps.graph.models.indexes import CorpusKind

from .items import INDEX_TIMED, ItemRefused, PassageItem, PassageResult, Prepared, Result, prepare
from .pages import links_changed
from .postings import index_nodes, remove_nodes

GROUP = 1_000

_COLUMNS = """
  "index" int, id uuid, node_no int, title text, body text, language text, digest text, scope text,
  project text, event_at timestamptz, updated_at timestamptz, repo text, type text, identity jsonb, part int,
  version text, path text, slug text, number bigint, url text, state text, labels text[], milestone text,
  assignee text, session text, "position" int"""

# Joined by the node's id alone: with nothing known of a fresh table, no other index may look cheaper.
_FIND = """
SELECT n.id, n.node_no, n.language, n.digest, n.label, p.version, p.repo, p.slug, n.scope, p.identity::text, p.part
FROM graph_passage p JOIN graph_node n ON n.id = p.node_id
WHERE p.principal_id = %s AND p.repo = %s AND p.type = %s AND p.identity = ANY(%s::jsonb[])
"""

_INSERT = f"""
WITH r AS MATERIALIZED (SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS r({_COLUMNS})),
n AS (
  INSERT INTO graph_node (id, workspace_id, principal_id, node_no, kind, subkind, label, body, language,
                          digest, scope, project, event_at, updated_at)
  SELECT id, %(workspace)s, %(owner)s, node_no, 'passage', type, title, body, language,
         digest, scope, project, event_at, updated_at FROM r)
INSERT INTO graph_passage (node_id, workspace_id, principal_id, repo, type, identity, part, version, path,
                           slug, number, url, state, labels, milestone, assignee, session, "position")
SELECT id, %(workspace)s, %(owner)s, repo, type, identity, part, version, path,
       slug, number, url, state, labels, milestone, assignee, session, "position" FROM r
"""

_REFRESH_PASSAGE = f"""
UPDATE graph_passage p SET version = r.version, path = r.path, slug = r.slug, number = r.number, url = r.url,
  state = r.state, labels = r.labels, milestone = r.milestone, assignee = r.assignee, session = r.session,
  "position" = r."position"
FROM jsonb_to_recordset(%(rows)s::jsonb) AS r({_COLUMNS})
WHERE p.node_id = r.id AND p.principal_id = %(owner)s
  AND (p.version, p.path, p.slug, p.number, p.url, p.state, p.labels, p.milestone, p.assignee, p.session,
       p."position")
  IS DISTINCT FROM (r.version, r.path, r.slug, r.number, r.url, r.state, r.labels::varchar[], r.milestone,
                    r.assignee, r.session, r."position")
"""

# A type versioned by its indexing keeps the time of the indexing that brought this text.
_REFRESH_NODE = f"""
UPDATE graph_node n SET event_at = r.event_at, project = r.project,
  updated_at = CASE WHEN r.type = ANY(%(index_timed)s) THEN n.updated_at ELSE r.updated_at END
FROM jsonb_to_recordset(%(rows)s::jsonb) AS r({_COLUMNS})
WHERE n.principal_id = %(owner)s AND n.id = r.id
  AND ((n.event_at, n.project) IS DISTINCT FROM (r.event_at, r.project)
       OR NOT r.type = ANY(%(index_timed)s) AND n.updated_at <> r.updated_at)
"""


class Stored(NamedTuple):
    """A passage that is already there."""

    id: UUID
    node_no: int
    language: str
    digest: str
    label: str
    version: str
    repo: str
    slug: str | None


def write_passages(*, items: Sequence[PassageItem]) -> list[PassageResult]:
    """Store passages for the session's principal; a result for each, in order.

    The same text at the same place is `unchanged`, its provenance brought up to date; another text replaces
    the old row (`updated`, under a new node id). An item that is refused says why and sinks no other. At
    most `GROUP` items are indexed at once.
    """
    return write_prepared(batch=prepare_passages(items))


@dataclass(frozen=True, slots=True)
class Batch:
    """Items after their checks: those to be stored, and the results of those refused."""

    prepared: list[Prepared]
    refused: list[PassageResult]


def prepare_passages(items: Sequence[PassageItem], *, analyse: bool = False) -> Batch:
    """Check and normalise items, and analyse them if asked; reads no row, so it needs no session."""
    prepared: list[Prepared] = []
    refused: list[PassageResult] = []
    for index, item in enumerate(items):
        try:
            prepared.append(prepare(index, item))
        except ItemRefused as refusal:
            refused.append(PassageResult(index, "error", error=refusal.code))
    if analyse:
        _analyse(prepared)
    return Batch(prepared, refused)


def write_prepared(*, batch: Batch) -> list[PassageResult]:
    """Store what was prepared, as `write_passages` does."""
    identity = current_principal()
    results = list(batch.refused)
    with transaction.atomic():
        lock_owner(identity.principal_id)
        for group in _groups(batch.prepared):
            results += _write_group(identity, group)
        if any(result.result in {"created", "updated"} for result in results):
            transaction.on_commit(_vectors_wanted, robust=True)
    return sorted(results, key=lambda result: result.index)


def _vectors_wanted() -> None:
    # Here, because the tasks stand on the services.
    from apps.graph.tasks import embed_soon

    embed_soon()


def _analyse(prepared: Sequence[Prepared]) -> list[Analysed]:
    """The terms of each text; what was analysed before is not again."""
    waiting = [p for p in prepared if p.analysed is None]
    texts = [(p.text, p.item.language) for p in waiting]
    for p, analysed in zip(waiting, ANALYSER.documents(texts, configurations=installed()), strict=True):
        p.analysed = analysed
    return [p.analysed for p in prepared if p.analysed is not None]


def _groups(prepared: Iterable[Prepared]) -> Iterator[list[Prepared]]:
    """Groups in which no place occurs twice, so that of two texts for one place the later wins."""
    group: list[Prepared] = []
    seen: set[tuple[str, str, str, str, int]] = set()
    for one in prepared:
        key = one.item.key()
        if key in seen or len(group) == GROUP:
            yield group
            group, seen = [], set()
        group.append(one)
        seen.add(key)
    if group:
        yield group


def _write_group(identity: PrincipalIdentity, group: list[Prepared]) -> list[PassageResult]:
    owner = identity.principal_id
    found = _existing(owner, group)
    same = [p for p in group if p.index in found and _is_same(p, found[p.index])]
    changed = [p for p in group if p.index in found and not _is_same(p, found[p.index])]
    kept = {p.index for p in same}
    fresh = [p for p in group if p.index not in kept]
    if changed:
        delete_nodes(owner, [found[p.index][:3] for p in changed])
    ids = _insert(identity, fresh)
    ids |= {p.index: found[p.index].id for p in same}
    _refresh(owner, same, found)
    links_changed(owner, identity.workspace_id, _touched(fresh, changed, same, found))
    outcomes: dict[int, Result] = {p.index: "unchanged" for p in same}
    outcomes.update((p.index, "updated") for p in changed)
    return [_result(p, ids[p.index], outcomes.get(p.index, "created")) for p in group]


def _touched(
    fresh: list[Prepared], changed: list[Prepared], same: list[Prepared], found: dict[int, Stored]
) -> set[tuple[str, str]]:
    """(repository, slug) of pages that are new, gone, reworded or renamed."""
    renamed = [p for p in same if p.slug != found[p.index].slug]
    touched = {(p.item.repo, p.slug) for p in (*fresh, *renamed) if p.slug}
    stored = [found[p.index] for p in (*changed, *renamed)]
    return touched | {(one.repo, one.slug) for one in stored if one.slug}


def _existing(owner: UUID, group: list[Prepared]) -> dict[int, Stored]:
    """What is stored at the places of the group, by the items' index."""
    places: dict[tuple[str, str], dict[tuple[str, str, int], int]] = defaultdict(dict)
    for p in group:
        item = p.item
        places[item.repo, item.type][item.scope, json.dumps(item.identity), item.part] = p.index
    found: dict[int, Stored] = {}
    with connection.cursor() as cursor:
        for (repo, type_), wanted in places.items():
            identities = list({identity for _, identity, _ in wanted})
            cursor.execute(_FIND, [owner, repo, type_, identities])
            for *row, scope, identity, part in cursor.fetchall():
                index = wanted.get((scope, json.dumps(json.loads(identity)), part))
                if index is not None:
                    found[index] = Stored(*row)
    return found


def _is_same(p: Prepared, stored: Stored) -> bool:
    # The digest covers title and body as one text; where the border lies is told by the title.
    return stored.digest == p.digest and stored.label == p.title


def _insert(identity: PrincipalIdentity, fresh: list[Prepared]) -> dict[int, UUID]:
    if not fresh:
        return {}
    analysed = _analyse(fresh)
    first = _last_node_no(identity.principal_id) + 1
    ids = {p.index: uuid7() for p in fresh}
    rows = [
        _row(p, ids[p.index], node_no=first + offset, language=a.language)
        for offset, (p, a) in enumerate(zip(fresh, analysed, strict=True))
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            _INSERT,
            {
                "owner": identity.principal_id,
                "workspace": identity.workspace_id,
                "rows": json.dumps(rows, ensure_ascii=False),
            },
        )
    numbered: list[tuple[int, Analysed]] = [(first + offset, a) for offset, a in enumerate(analysed)]
    index_nodes(identity.principal_id, CorpusKind.PASSAGES, numbered)
    return ids


def _last_node_no(owner: UUID) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT coalesce(max(node_no), 0) FROM graph_node WHERE principal_id = %s", [owner])
        return int(cursor.fetchone()[0])


def _row(
    p: Prepared, node_id: UUID, *, node_no: int, language: str | None, version: str = ""
) -> dict[str, Any]:
    item = p.item
    return {
        "index": p.index,
        "id": str(node_id),
        "node_no": node_no,
        "title": p.title,
        "body": p.body,
        "language": language,
        "digest": p.digest,
        "scope": item.scope,
        "project": item.project,
        "event_at": item.event_at.isoformat() if item.event_at else None,
        "updated_at": p.updated_at.isoformat(),
        "repo": item.repo,
        "type": item.type,
        "identity": item.identity,
        "part": item.part,
        "version": version or p.version,
        "path": item.path,
        "slug": p.slug,
        "number": p.number,
        "url": item.url,
        "state": item.state,
        "labels": list(item.labels),
        "milestone": item.milestone,
        "assignee": item.assignee,
        "session": item.session,
        "position": item.position,
    }


def _refresh(owner: UUID, same: list[Prepared], found: dict[int, Stored]) -> None:
    """Bring provenance up to date where the text is the one that is stored."""
    if not same:
        return
    rows = []
    for p in same:
        stored = found[p.index]
        p.version = stored.version if p.item.type in INDEX_TIMED else p.version
        rows.append(_row(p, stored.id, node_no=0, language=None))
    parameters: dict[str, Any] = {
        "owner": owner,
        "rows": json.dumps(rows, ensure_ascii=False),
        "index_timed": list(INDEX_TIMED),
    }
    with connection.cursor() as cursor:
        cursor.execute(_REFRESH_PASSAGE, parameters)
        cursor.execute(_REFRESH_NODE, parameters)


def _result(p: Prepared, node_id: UUID, result: Result) -> PassageResult:
    return PassageResult(
        p.index,
        result,
        node_id=node_id,
        repo=p.item.repo,
        type=p.item.type,
        identity=p.item.identity,
        version=p.version,
    )


def delete_nodes(owner: UUID, nodes: Sequence[tuple[UUID, int, str]]) -> None:
    """Delete passages (id, node_no, language), postings, counts and, by cascade, vectors; under the lock."""
    remove_nodes(owner, CorpusKind.PASSAGES, nodes)
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM graph_node WHERE principal_id = %s AND id = ANY(%s)", [owner, [n[0] for n in nodes]]
        )


def delete_passages(*, node_ids: Sequence[UUID]) -> int:
    """Delete the session's principal's passages among these; the number deleted. Foreign ids are absent."""
    identity = current_principal()
    owner = identity.principal_id
    with transaction.atomic():
        lock_owner(owner)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT n.id, n.node_no, n.language, p.repo, p.slug FROM graph_node n "
                "JOIN graph_passage p ON p.node_id = n.id "
                "WHERE n.principal_id = %s AND n.id = ANY(%s) AND n.kind = 'passage'",
                [owner, list(node_ids)],
            )
            rows = cursor.fetchall()
        if rows:
            delete_nodes(owner, [row[:3] for row in rows])
            links_changed(owner, identity.workspace_id, {(repo, slug) for *_, repo, slug in rows if slug})
    return len(rows)
