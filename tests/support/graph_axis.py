"""Searches that walk the mentions of the found pages, and what is learned from them."""

from typing import Any
from uuid import UUID

from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session
from tests.feedback.test_outcomes import confirm
from tests.support.library import ask
from tests.support.traces import climb


def expanded(principal: PrincipalIdentity, **more: Any) -> dict[str, Any]:
    return ask(principal, "billing rollback", graph_expand=True, **({"limit": 1} | more))


def learn(principal: PrincipalIdentity, answer: dict[str, Any], index: int = -1) -> dict[str, Any]:
    """Use and confirm a graph row; the receipt."""
    row = answer["graph_results"][index]
    with principal_session(principal):
        climb(UUID(answer["trace_id"]), row["source_id"])
        return confirm(UUID(answer["trace_id"]), row["source_id"])
