"""Imports over HTTP: items validated one by one, stored together, answered with their sources."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from apps.core.schemas import validated
from apps.graph.services import PassageResult, write_passages
from apps.sources.identity import INDEX, Unresolved, identify
from apps.sources.schemas import ItemError, NodeItem, NodeResult

_DETAILS = {"text_too_long": "Title and text together may hold 10,000 characters."}


@dataclass(frozen=True, slots=True)
class _Stored:
    """The provenance of a stored passage."""

    repo: str | None
    type: str | None
    identity: Any
    version: str | None
    content_source: str = INDEX


def import_nodes(*, items: Sequence[dict[str, Any]]) -> list[NodeResult]:
    """Store what is well formed for the session's principal; a result for every item, in order."""
    results: list[NodeResult | None] = [None] * len(items)
    places: list[int] = []
    passages = []
    for index, given in enumerate(items):
        found = validated(NodeItem, given)
        if isinstance(found, NodeItem):
            places.append(index)
            passages.append(found.passage())
        else:
            error = ItemError(code="invalid_item", detail=found[0].detail, pointer=found[0].pointer)
            results[index] = NodeResult(index=index, result="error", error=error)
    for place, stored in zip(places, write_passages(items=passages), strict=True):
        results[place] = _result(place, stored)
    return [result for result in results if result is not None]


def _result(index: int, stored: PassageResult) -> NodeResult:
    if stored.error:
        error = ItemError(code=stored.error, detail=_DETAILS.get(stored.error, ""))
        return NodeResult(index=index, result="error", error=error)
    return NodeResult(
        index=index, result=stored.result, node_id=stored.node_id, source_id=source_id_of(stored)
    )


def source_id_of(stored: PassageResult) -> str | None:
    """The source id of a stored passage, or None where its identity is not canonical."""
    try:
        return identify(_Stored(stored.repo, stored.type, stored.identity, stored.version)).source_id
    except Unresolved:
        return None
