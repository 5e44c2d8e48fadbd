"""`GET /v1/search/explain`: why a node stands where it does in an answer, or does not.

A returned row is explained by its receipt. Any other node is asked of the memory as it is now, by the same question
under the rules of today, and the answer says so. A node that is not the caller's is one that is not there.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.core import clock
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session
from apps.graph.embedders import QueryEmbedding, embed_query
from apps.learning.models import JudgedQuery
from apps.retrieval import explaining
from apps.retrieval.policy import PolicyInForce, in_force
from apps.retrieval.receipts.schemas import ReceiptDocument
from apps.retrieval.reranking import judge
from apps.retrieval.retrieve import Begun, begin
from apps.retrieval.schemas import Filters, RetrievalRequest
from apps.retrieval.selectors import StoredReceipt, stored_receipt
from apps.search.found import READ_ONLY
from apps.traces.models import Trace

ERASED = "query_erased"


@dataclass(frozen=True, slots=True)
class Asked:
    """A receipt, and the words of its query where they are still kept."""

    stored: StoredReceipt
    query: str | None


def explain(*, caller: PrincipalIdentity, receipt_id: UUID, node_id: UUID) -> dict[str, Any]:
    """The answer of the route, outside of any session. Raises UnknownReceipt, CorruptReceipt."""
    with principal_session(caller, limits=READ_ONLY):
        stored = stored_receipt(receipt_id)
        recorded = explaining.arithmetic(stored.receipt, node_id)
        asked = Asked(stored, None if recorded else _words(stored.receipt))
    head = {"receipt_id": str(receipt_id), "node_id": str(node_id), "returned": recorded is not None}
    if recorded is not None:
        return head | {"asked_of": "receipt", "arithmetic": _arithmetic_shown(stored.receipt, recorded)}
    return head | {"asked_of": "memory_now", "as_of": clock.iso(clock.now())} | _now(caller, asked, node_id)


def _words(receipt: ReceiptDocument) -> str | None:
    """The query, from its only home."""
    home = receipt.request.query
    if home.home == "trace":
        return Trace.objects.filter(pk=UUID(home.id)).values_list("query", flat=True).first()
    return (
        JudgedQuery.objects.filter(query_set_id=UUID(home.id), name=home.name)
        .values_list("text", flat=True)
        .first()
    )


def _now(caller: PrincipalIdentity, asked: Asked, node_id: UUID) -> dict[str, Any]:
    embedding = embed_query(asked.query) if asked.query is not None else QueryEmbedding("empty")
    request = request_of(asked.stored.receipt, asked.query or "", embedding)
    with principal_session(caller, limits=READ_ONLY):
        ruling = in_force(caller.workspace_id)
        found = explaining.visible_standing(request, node_id)
        begun = None
        if found is None and asked.query is not None:
            begun = _begun(asked.stored.receipt, request, ruling)
    if begun is not None:
        verdict = judge(begun.pairs)
        with principal_session(caller, limits=READ_ONLY):
            found = explaining.ranked_standing(begun, verdict, node_id)
    if found is None:
        return {"reason": ERASED}
    same = ruling.reference.sha256 == asked.stored.receipt.policy.sha256
    return _standing_shown(found) | {"same_policy": same}


def request_of(receipt: ReceiptDocument, query: str, embedding: QueryEmbedding) -> RetrievalRequest:
    """The request that a receipt records, to be asked again."""
    asked = receipt.request
    return RetrievalRequest(
        query=query,
        embedding=embedding,
        reference_time=asked.reference_time,
        scopes=asked.scopes,
        corpus=asked.corpus,
        limit=asked.limit,
        filters=Filters(**asked.filters.model_dump()),
        epistemic_mode=asked.epistemic_mode,
        min_score=asked.min_score,
        max_per_source=asked.max_per_source,
    )


def _begun(receipt: ReceiptDocument, request: RetrievalRequest, ruling: PolicyInForce) -> Begun:
    """The recorded multipliers hold, unless the formula is another one by now."""
    multipliers = None
    if receipt.policy.formula == ruling.document.formula:
        multipliers = dict(zip(receipt.weight_names, receipt.weights[0].multipliers, strict=True))
    return begin(request, multipliers=multipliers, policy=ruling)


def _arithmetic_shown(receipt: ReceiptDocument, recorded: explaining.Arithmetic) -> dict[str, Any]:
    return {
        "rank": recorded.rank,
        "score": recorded.score,
        "formula": receipt.policy.formula,
        "contract": receipt.features.contract,
        "channels": recorded.channels,
        "factors": [
            {
                "name": each.name,
                "value": each.value,
                "base": each.base,
                "multiplier": each.multiplier,
                "applied": each.applied,
                "contribution": each.contribution,
            }
            for each in recorded.factors
        ],
        "formula_score": recorded.formula_score,
        "adjustments": [
            {"kind": each.kind, "coefficient": each.coefficient, "score": each.score}
            | ({"source": each.source} if each.source else {})
            for each in recorded.steps
        ],
        "raw": {name: value for name, value in recorded.raw.items() if value is not None},
    }


def _standing_shown(found: explaining.Standing) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "reason": found.reason,
        "codes": list(found.codes) or None,
        "channels": [_channel_shown(each) for each in found.channels] or None,
        "rank": found.rank,
        "score": found.score,
        "cut": found.cut,
        "under": str(found.under) if found.under else None,
    }
    return {name: value for name, value in shown.items() if value is not None}


def _channel_shown(each: explaining.ChannelStanding) -> dict[str, Any]:
    shown = {"name": each.name, "status": each.status, "value": each.value, "cut": each.cut}
    return {name: value for name, value in shown.items() if value is not None}
