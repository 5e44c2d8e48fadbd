"""Keeps native receipts of retrievals, as a holdout does: of a query set, without a trace."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from apps.core import clock
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session
from apps.retrieval.context import packed
from apps.retrieval.packing import Packing
from apps.retrieval.policy import PolicyInForce
from apps.retrieval.receipts.document import NewReceipt, ProfileUse
from apps.retrieval.retrieve import retrieve
from apps.retrieval.schemas import Retrieval, RetrievalRequest
from apps.retrieval.services import save_receipt
from tests.support import memory

QUERY_SET = UUID(int=1)


def keep(
    principal: PrincipalIdentity,
    query: str = "harbour crane inspection",
    *,
    policy: PolicyInForce | None = None,
    multipliers: Mapping[str, float] | None = None,
    token_budget: int | None = None,
    **fields: Any,
) -> tuple[Retrieval, UUID]:
    """Retrieve and keep the receipt, with a context where a budget is given; both."""
    request = RetrievalRequest(query=query, embedding=memory.NO_VECTOR, reference_time=clock.now(), **fields)
    with principal_session(principal):
        found = retrieve(request, policy=policy, multipliers=multipliers)
        new = NewReceipt(
            request=request,
            retrieval=found,
            recorded_at=clock.now(),
            query_set_id=QUERY_SET,
            query_name="q1",
            context=packed(found.rows, Packing(token_budget, request.reference_time))
            if token_budget
            else None,
            profile=ProfileUse(status="request_override" if multipliers else "none"),
        )
        return found, save_receipt(new=new)
