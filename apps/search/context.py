"""The context of an answer: a text for a model, out of the rows that were found."""

from typing import Any

from apps.retrieval.context import packed
from apps.retrieval.packing import PackedContext, Packing
from apps.search.found import Found
from apps.search.schemas import SearchRequest


def pack_found(request: SearchRequest, found: Found) -> PackedContext | None:
    """The context that the caller asked for; of stored texts, also where rows show live ones."""
    if not request.include_context or found.retrieval is None or found.asked is None:
        return None
    options = Packing(
        token_budget=request.token_budget,
        reference_time=found.asked.reference_time,
        ordering=request.context_ordering,
        format=request.context_format,
        guidance=request.context_guidance,
        min_fidelity=request.min_fidelity,
    )
    return packed(found.retrieval.rows, options)


def context_shown(context: PackedContext) -> dict[str, Any]:
    """As the API shows it."""
    options = context.options
    return {
        "text": context.text,
        "sha256": context.sha256,
        "token_budget": options.token_budget,
        "used_tokens": context.used_tokens,
        "tokenizer": context.tokenizer,
        "packing": context.version,
        "ordering": options.ordering,
        "format": options.format,
        "guidance": options.guidance,
        "entries": [
            {
                "number": number,
                "node_id": str(entry.node_id),
                "tier": entry.tier,
                "representation": entry.representation,
                "token_cost": entry.token_cost,
                "has_content": entry.has_content,
            }
            for number, entry in enumerate(context.entries, 1)
        ],
        "left_out": [{"node_id": str(each.node_id), "reason": each.reason} for each in context.left_out],
    }
