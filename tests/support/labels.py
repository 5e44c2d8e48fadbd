"""Receipts to judge and to cite from, with a context as packing would leave it, and judgments of them."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from apps.core import clock
from apps.core.db.cursors import session_cursor
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import current_principal, principal_session
from apps.feedback.schemas import JudgmentRequest
from apps.feedback.services.judgments import record_judgment
from apps.retrieval.packing import PACKING
from apps.retrieval.receipts.document import NewReceipt, document_of
from apps.retrieval.retrieve import retrieve
from apps.retrieval.schemas import RetrievalRequest
from apps.retrieval.services.receipts import HASH_KEY, INSERT, _values
from tests.support import memory

QUERY = "harbour crane inspection"
CONTEXT = "c" * 64
PACKED = {
    "ordering": "score",
    "format": "auditable",
    "guidance": "off",
    "min_fidelity": "reference",
    "token_budget": 2000,
    "tokenizer": "estimate-1",
    "used_tokens": 100,
}


@dataclass(frozen=True)
class Kept:
    """A stored receipt: its id and its nodes in order."""

    id: UUID
    nodes: tuple[UUID, ...]


def fill(principal: PrincipalIdentity, count: int = 4) -> None:
    """A memory of which `QUERY` finds so many rows."""
    memory.store(principal, *(f"harbour crane {'inspection ' * n}report {n}" for n in range(1, count + 1)))


def keep(
    principal: PrincipalIdentity,
    *,
    in_context: Collection[int] = (),
    references: Collection[int] = (),
    query: str = QUERY,
) -> Kept:
    """Retrieve and store the receipt, as of a query set; these places are in its context, these as references."""
    request = RetrievalRequest(query=query, embedding=memory.NO_VECTOR, reference_time=clock.now())
    with principal_session(principal):
        found = retrieve(request)
        new = NewReceipt(
            request=request,
            retrieval=found,
            recorded_at=clock.now(),
            query_set_id=UUID(int=1),
            query_name="q1",
            mode="context" if in_context else "search",
        )
        _store(new, in_context, references)
    return Kept(new.id, tuple(row.node_id for row in found.rows))


def _store(new: NewReceipt, in_context: Collection[int], references: Collection[int]) -> None:
    owner = current_principal()
    cursor = session_cursor()
    key = cursor.execute(HASH_KEY, [owner.principal_id], binary=True).fetchone()
    assert key is not None
    document = document_of(new, bytes(key[0]))
    for place, candidate in enumerate(document["candidates"]):
        if place in in_context:
            candidate["token_cost"] = 7
        if place in references:
            candidate |= {"representation": "reference", "has_content": False}
    if in_context:
        document["context_sha256"] = CONTEXT
        document["policy"]["packing"] = PACKING
        document["packing"] = PACKED | {"order": sorted(in_context), "tiers": [0, 0, 0, len(in_context)]}
    values = _values(new, document) | {"w": owner.workspace_id, "p": owner.principal_id}
    cursor.execute(INSERT, values)


def labels(given: Mapping[UUID, Any], **more: Any) -> dict[str, Any]:
    """The body of a judgment of results."""
    body = {
        "feedback_id": str(uuid4()),
        "labels": {str(node): value for node, value in given.items()},
        "surface": "results",
        "method": "explicit_user",
    }
    return body | more


def judge(
    receipt_id: UUID, given: Mapping[UUID, bool] | None = None, *, by: str | None = None, **more: Any
) -> UUID:
    """Record a judgment in the session that is open; its feedback id."""
    body = {"feedback_id": str(uuid4())} | more if given is None else labels(given, **more)
    submission = JudgmentRequest.model_validate_json(json.dumps(body))
    record_judgment(receipt_id=receipt_id, submission=submission, annotator=by)
    return submission.feedback_id
