"""Reads of query sets, in the session of their principal."""

import json
from typing import Any
from uuid import UUID

from apps.core import clock
from apps.core.db.sessions import current_principal
from apps.core.pages import KeysetPage
from apps.learning.exceptions import UnknownQuerySet
from apps.learning.models import JudgedQuery, QuerySet
from apps.learning.requests import PageQuery


def query_set_of(set_id: UUID) -> QuerySet:
    """A query set of the session's principal. Raises UnknownQuerySet."""
    found = QuerySet.objects.filter(principal_id=current_principal().principal_id, pk=set_id).first()
    if found is None:
        raise UnknownQuerySet
    return found


def query_sets_page(query: PageQuery) -> dict[str, Any]:
    """A page of the caller's query sets, newest first."""
    owner = current_principal().principal_id
    page = KeysetPage.of(
        QuerySet.objects.filter(principal_id=owner),
        limit=query.limit,
        cursor=query.cursor,
        owner=owner,
        listing="query_sets",
        order=("-created_at", "-id"),
    )
    return {"query_sets": [_head(row) for row in page.items], "next_cursor": page.next_cursor}


def query_set_shown(set_id: UUID, query: PageQuery) -> dict[str, Any]:
    """One query set with a page of its queries, by their ids. Raises UnknownQuerySet."""
    found = query_set_of(set_id)
    page = KeysetPage.of(
        JudgedQuery.objects.filter(query_set_id=found.pk),
        limit=query.limit,
        cursor=query.cursor,
        owner=found.principal_id,
        listing="judged_queries",
        order=("position",),
        filters={"query_set": str(found.pk)},
    )
    return _head(found) | {
        "queries": [_query_shown(row) for row in page.items],
        "next_cursor": page.next_cursor,
    }


def _head(found: QuerySet) -> dict[str, Any]:
    return {
        "query_set_id": str(found.pk),
        "name": found.name,
        "source": found.source,
        "created_at": clock.iso(found.created_at),
        "queries_total": found.num_queries,
        "judgments_total": found.num_judgments,
        "content_sha256": found.content_sha256,
    }


def _query_shown(row: JudgedQuery) -> dict[str, Any]:
    judged = zip(row.repos, row.identities, row.grades, strict=True)
    return {
        "id": row.name,
        "text": row.text,
        "group": row.group_name,
        "slice": row.slice,
        "judgments": [
            {"repo": repo, "identity": json.loads(identity), "grade": grade}
            for repo, identity, grade in judged
        ],
    }
