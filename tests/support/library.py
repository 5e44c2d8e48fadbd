"""A small memory to search: pages that mention each other, threads, files."""

from datetime import datetime
from typing import Any

from apps.core import clock
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session
from apps.graph.services.items import PassageItem
from apps.graph.services.passages import write_passages
from apps.search.schemas import SearchRequest
from apps.search.services import search

REPO = "acme/app"


def wiki(slug: str, text: str, **more: Any) -> PassageItem:
    """A wiki page; every other page's slug in its text is a mention."""
    return PassageItem(
        identity=f"wiki/{slug}.md", type="wiki_doc", repo=REPO, path=f"wiki/{slug}.md", text=text, **more
    )


def thread(
    number: int, text: str, kind: str = "issue", at: datetime | None = None, **more: Any
) -> PassageItem:
    given: dict[str, Any] = {
        "identity": number,
        "repo": REPO,
        "number": number,
        "updated_at": clock.iso(at or clock.now()),
    }
    return PassageItem(type=kind, text=text, **(given | more))


def store(principal: PrincipalIdentity, *items: PassageItem) -> list[str]:
    """Write passages; their node ids in order."""
    with principal_session(principal):
        return [str(result.node_id) for result in write_passages(items=list(items))]


def ask(principal: PrincipalIdentity, query: str = "", **fields: Any) -> dict[str, Any]:
    """The document of an answer."""
    return search(caller=principal, request=SearchRequest(query=query, **fields)).document


CHAIN = (
    wiki("alpha-page", "Rollback of billing. See beta-page for the steps."),
    wiki("beta-page", "Steps in order. Continue at gamma-page."),
    wiki("gamma-page", "The last step."),
)
"""alpha-page → beta-page → gamma-page; only the first is found by `billing`."""
