"""The graph axis: an undirected walk over stored mentions, from the ranked pages outwards.

It reads `graph_page_edge` only; learned strength is not known here. Every page on the way is described as it was
walked over, so that a path can be verified afterwards, also where the answer leaves the page out.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from psycopg import Cursor

from apps.core import canonical
from apps.core.db.cursors import session_cursor
from apps.core.db.sessions import current_principal
from apps.retrieval.schemas import Provenance

MENTION = "mention"
PAGE_TYPE = "wiki_doc"
MAX_EDGES = 2000
"""Edges that a walk looks at; a deeper part of it is left out, and said to be."""
MAX_PATHS = 4
"""Shortest paths of a page that are kept."""

Page = tuple[str, str]
"""Repository and slug."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A mention in its own direction, whichever way it was walked."""

    repo: str
    src: str
    dst: str
    kind: str

    @property
    def key(self) -> str:
        """The unversioned edge key: the canonical JSON array [repo, src, dst, kind]."""
        return canonical.dumps([self.repo, self.src, self.dst, self.kind]).decode()

    def shown(self) -> dict[str, str]:
        return {"repo": self.repo, "src": self.src, "dst": self.dst, "kind": self.kind}


@dataclass(frozen=True, slots=True)
class PageNode:
    """A page that was walked over."""

    slug: str | None
    provenance: Provenance


@dataclass(frozen=True, slots=True)
class Path:
    """A walk from a ranked row to a page: `nodes` has one more than `edges`; None is a page that is not there."""

    edges: tuple[Edge, ...]
    nodes: tuple[PageNode | None, ...]


@dataclass(frozen=True, slots=True)
class PageRow:
    """A row of the graph axis; it has a hop and no score. `paths` are all shortest ones, at most four."""

    node_id: UUID
    hop: int
    slug: str
    title: str
    provenance: Provenance
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Expansion:
    """Rows by (hop, canonical page key); `truncated` where edges were left out."""

    rows: tuple[PageRow, ...]
    truncated: bool


@dataclass(frozen=True, slots=True)
class _Route:
    """Edges walked so far, and the pages before, between and after them."""

    edges: tuple[Edge, ...]
    pages: tuple[Page, ...]

    @property
    def order(self) -> tuple[str, ...]:
        return tuple(edge.key for edge in self.edges)


@dataclass(slots=True)
class _Walk:
    """The pages reached so far, each with its hop and its shortest routes."""

    hops: dict[Page, int]
    routes: dict[Page, list[_Route]]
    seen: set[Edge] = field(default_factory=set)
    truncated: bool = False

    def step(self, edges: Iterable[Edge], hop: int) -> None:
        """One hop further, both ways along each edge. A page keeps the hop at which it was first reached."""
        found: dict[Page, list[_Route]] = {}
        for edge in edges:
            if edge in self.seen:
                continue
            if len(self.seen) == MAX_EDGES:
                self.truncated = True
                break
            self.seen.add(edge)
            ends = (edge.repo, edge.src), (edge.repo, edge.dst)
            for here, there in (ends, ends[::-1]):
                if self.hops.get(here) == hop - 1 and self.hops.get(there, hop) >= hop:
                    found.setdefault(there, []).extend(
                        _Route((*route.edges, edge), (*route.pages, there)) for route in self.routes[here]
                    )
        for page, routes in found.items():
            self.hops[page] = hop
            self.routes[page] = sorted(routes, key=lambda route: route.order)[:MAX_PATHS]


def expand(
    origins: Collection[Page], *, hops: int, scopes: Sequence[str] | None = None, shared_only: bool = False
) -> Expansion:
    """Pages within `hops` mentions of the origins, the origins not among them; in the session of a principal.

    Pages outside of `scopes` are walked over and not returned.
    """
    cursor = session_cursor()
    owners = _owners(shared_only)
    walked = _Walk(dict.fromkeys(origins, 0), {page: [_Route((), (page,))] for page in origins})
    for hop in range(1, hops + 1):
        frontier = [page for page, at in walked.hops.items() if at == hop - 1]
        if not frontier or walked.truncated:
            break
        walked.step(_edges(cursor, owners, frontier, MAX_EDGES + len(walked.seen) + 1), hop)
    stored = _stored(cursor, owners, walked.hops)
    return Expansion(tuple(_rows(walked, stored, scopes)), walked.truncated)


def _owners(shared_only: bool) -> list[UUID]:
    me = current_principal()
    own = [] if shared_only else [me.principal_id]
    return own + ([me.shared_principal_id] if me.shared_principal_id else [])


# Ordered, so that the bound cuts the same edges on every run.
_EDGES = """
SELECT e.repo, e.src, e.dst, e.kind FROM (
  SELECT e.repo, e.src, e.dst, e.kind FROM unnest(%(repos)s::text[], %(slugs)s::text[]) f (repo, slug)
  JOIN graph_pageedge e ON e.principal_id = ANY(%(owners)s) AND e.repo = f.repo AND e.src = f.slug
  UNION
  SELECT e.repo, e.src, e.dst, e.kind FROM unnest(%(repos)s::text[], %(slugs)s::text[]) f (repo, slug)
  JOIN graph_pageedge e ON e.principal_id = ANY(%(owners)s) AND e.repo = f.repo AND e.dst = f.slug
) e WHERE e.kind = %(kind)s
ORDER BY e.repo COLLATE "C", e.src COLLATE "C", e.dst COLLATE "C" LIMIT %(most)s
"""


def _edges(cursor: Cursor[Any], owners: Sequence[UUID], pages: Sequence[Page], most: int) -> list[Edge]:
    repos, slugs = [repo for repo, _ in pages], [slug for _, slug in pages]
    values = {"repos": repos, "slugs": slugs, "owners": list(owners), "kind": MENTION, "most": most}
    cursor.execute(_EDGES, values)
    return [Edge(*row) for row in cursor.fetchall()]


# The own copy of a page before the shared one, its first part before the others.
_STORED = """
SELECT DISTINCT ON (p.repo, p.slug) p.repo, p.slug, n.id, n.label, n.scope, p.identity, p.version, p.part
FROM unnest(%(repos)s::text[], %(slugs)s::text[]) f (repo, slug)
JOIN graph_passage p ON p.principal_id = ANY(%(owners)s) AND p.repo = f.repo AND p.type = %(type)s
  AND p.slug = f.slug
JOIN graph_node n ON n.id = p.node_id AND n.archived_at IS NULL AND n.superseded_at IS NULL
ORDER BY p.repo, p.slug, array_position(%(owners)s::uuid[], p.principal_id), p.path, p.part, n.id
"""


@dataclass(frozen=True, slots=True)
class _StoredPage:
    node_id: UUID
    title: str
    scope: str
    node: PageNode


def _stored(cursor: Cursor[Any], owners: Sequence[UUID], pages: Iterable[Page]) -> dict[Page, _StoredPage]:
    wanted = list(pages)
    values = {
        "repos": [repo for repo, _ in wanted],
        "slugs": [slug for _, slug in wanted],
        "owners": list(owners),
        "type": PAGE_TYPE,
    }
    cursor.execute(_STORED, values)
    found = {}
    for repo, slug, node_id, title, scope, identity, version, part in cursor.fetchall():
        known = json.loads(identity) if isinstance(identity, str) else identity
        provenance = Provenance(repo, PAGE_TYPE, known, version, part)
        found[repo, slug] = _StoredPage(node_id, title, scope, PageNode(slug, provenance))
    return found


def _rows(
    walked: _Walk, stored: Mapping[Page, _StoredPage], scopes: Sequence[str] | None
) -> Iterable[PageRow]:
    pages = [page for page, hop in walked.hops.items() if hop > 0]
    for page in sorted(pages, key=lambda page: (walked.hops[page], canonical.dumps(list(page)).decode())):
        here = stored.get(page)
        if here is None or (scopes is not None and here.scope not in scopes):
            continue
        paths = tuple(
            Path(route.edges, tuple(stored[p].node if p in stored else None for p in route.pages))
            for route in walked.routes[page]
        )
        yield PageRow(here.node_id, walked.hops[page], page[1], here.title, here.node.provenance, paths)
