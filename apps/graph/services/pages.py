"""Mention edges between the wiki pages of a repository: a pure function of the pages that are there now.

Under the repository's lock a change of a page recomputes its outgoing edges against all slugs and the
incoming ones of its slug against all texts, so that no order of indexing can make another set of edges.
"""

from collections import defaultdict
from collections.abc import Iterable
from uuid import UUID

from django.db import connection

from apps.graph.locks import lock_repository
from apps.graph.models import PageEdge

MENTION = "mention"
_FLANK = "abcdefghijklmnopqrstuvwxyz0123456789-"


def mentions(text: str, slugs: Iterable[str]) -> set[str]:
    """The slugs that occur in a text exactly, not as a part of a longer slug-like word."""
    found = set()
    for slug in slugs:
        at = text.find(slug)
        while at >= 0:
            end = at + len(slug)
            before, after = text[at - 1 : at], text[end : end + 1]
            if not (before and before in _FLANK) and not (after and after in _FLANK):
                found.add(slug)
                break
            at = text.find(slug, at + 1)
    return found


def links_changed(owner: UUID, workspace: UUID, touched: Iterable[tuple[str, str]]) -> None:
    """Recompute the mention edges of these (repository, slug) pages, which were written or deleted."""
    by_repository: dict[str, set[str]] = defaultdict(set)
    for repo, slug in touched:
        by_repository[repo].add(slug)
    for repo in sorted(by_repository):
        lock_repository(owner, repo)
        _recompute(owner, workspace, repo, by_repository[repo])


def _recompute(owner: UUID, workspace: UUID, repo: str, slugs: set[str]) -> None:
    pages = _slugs(owner, repo)
    present = slugs & pages
    wanted: set[tuple[str, str]] = set()
    for slug, text in _texts(owner, repo, present):
        others = pages if slug in slugs else present
        wanted |= {(slug, other) for other in mentions(text, others - {slug})}
    _forget_pages(owner, repo, slugs - pages)
    stored = _stored(owner, repo, slugs)
    _delete(owner, repo, sorted(stored - wanted))
    _insert(owner, workspace, repo, sorted(wanted - stored))


def _slugs(owner: UUID, repo: str) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT slug FROM graph_passage "
            "WHERE principal_id = %s AND repo = %s AND type = 'wiki_doc' AND slug IS NOT NULL",
            [owner, repo],
        )
        return {slug for (slug,) in cursor.fetchall()}


def _texts(owner: UUID, repo: str, slugs: set[str]) -> list[tuple[str, str]]:
    """(slug, text) of the pages of these slugs, and of those whose text may mention one."""
    if not slugs:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT p.slug, t.text
            FROM graph_passage p JOIN graph_node n ON n.id = p.node_id,
                 LATERAL (SELECT n.label || chr(10) || n.body AS text) t
            WHERE p.principal_id = %(owner)s AND p.repo = %(repo)s AND p.type = 'wiki_doc'
              AND p.slug IS NOT NULL AND (p.slug = ANY(%(slugs)s) OR EXISTS (
                SELECT FROM unnest(%(slugs)s::text[]) AS s(slug) WHERE strpos(t.text, s.slug) > 0))
            """,
            {"owner": owner, "repo": repo, "slugs": list(slugs)},
        )
        return list(cursor.fetchall())


def _forget_pages(owner: UUID, repo: str, slugs: set[str]) -> None:
    """Remove every edge, typed ones too, that touches a page that is not there any more."""
    if not slugs:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM graph_pageedge WHERE principal_id = %s AND repo = %s "
            "AND (src = ANY(%s) OR dst = ANY(%s))",
            [owner, repo, list(slugs), list(slugs)],
        )


def _stored(owner: UUID, repo: str, slugs: set[str]) -> set[tuple[str, str]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT src, dst FROM graph_pageedge WHERE principal_id = %s AND repo = %s AND kind = %s "
            "AND (src = ANY(%s) OR dst = ANY(%s))",
            [owner, repo, MENTION, list(slugs), list(slugs)],
        )
        return set(cursor.fetchall())


def _delete(owner: UUID, repo: str, edges: list[tuple[str, str]]) -> None:
    if not edges:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM graph_pageedge e USING unnest(%s::text[], %s::text[]) AS g(src, dst) "
            "WHERE e.principal_id = %s AND e.repo = %s AND e.kind = %s AND (e.src, e.dst) = (g.src, g.dst)",
            [[src for src, _ in edges], [dst for _, dst in edges], owner, repo, MENTION],
        )


def _insert(owner: UUID, workspace: UUID, repo: str, edges: list[tuple[str, str]]) -> None:
    PageEdge.objects.bulk_create(
        PageEdge(
            workspace_id=workspace, principal_id=owner, repo=repo, src=src, dst=dst, kind=MENTION, weight=1.0
        )
        for src, dst in edges
    )
