"""Loads the demo memory into a principal and plays what its application did. Safe to repeat.

What is there already is kept: passages by their place, traces by their query, uses and outcomes by their
idempotency keys. A run that broke off is finished by the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session
from apps.feedback.services.outcomes import Outcome, record_outcome
from apps.graph.services import embed_missing
from apps.search.demo.schemas import Call, Told, demo_memory
from apps.search.schemas import SearchRequest
from apps.search.services import search
from apps.sources.services import import_nodes
from apps.traces.models import STAGES, USED, ReceiptKind, Trace
from apps.traces.schemas import UseEntry
from apps.traces.selectors import SavedSource, saved_sources
from apps.traces.services.uses import record_uses

LOOKED_AT = 2
"""Rows that the application of the demo looks at in every answer, used or not."""
KEY = "demo:{trace}:{call}"


@dataclass(frozen=True, slots=True)
class Loaded:
    """What one run did. `embedder_error` says why there are no vectors, where there are none."""

    imported: int
    vectors: int
    searches: int
    embedder_error: str | None = None


class DemoIncomplete(Exception):
    """An item was refused, or a search was not recorded."""


def load_demo(*, principal: PrincipalIdentity) -> Loaded:
    """Write the demo memory of a principal; outside of any session. Raises DemoIncomplete."""
    imported = _import(principal)
    vectors, error = _embed(principal)
    made = sum(_play(principal, call) for call in demo_memory().queries)
    return Loaded(imported, vectors, made, error)


def _import(principal: PrincipalIdentity) -> int:
    with principal_session(principal):
        results = import_nodes(items=demo_memory().items)
    refused = [result for result in results if result.error is not None]
    if refused:
        raise DemoIncomplete(f"{len(refused)} items were refused")
    return sum(result.result != "unchanged" for result in results)


def _embed(principal: PrincipalIdentity) -> tuple[int, str | None]:
    ready, more = 0, True
    while more:
        run = embed_missing(principal=principal)
        if run.error:
            return ready, run.error
        ready, more = ready + run.ready, run.more
    return ready, None


def _play(principal: PrincipalIdentity, call: Call) -> bool:
    """Make one call and what follows it; whether the search itself was new."""
    request = SearchRequest.model_validate({"query": call.text, **call.request})
    trace_id = _earlier(principal, request)
    is_new = trace_id is None
    if trace_id is None:
        answer = search(caller=principal, request=request).document
        if "trace_id" not in answer:
            raise DemoIncomplete("a search was not recorded")
        trace_id = UUID(answer["trace_id"])
    with principal_session(principal):
        sources = saved_sources(trace_id)
    used = _used(call, sources)
    _climb(principal, trace_id, sources, used)
    if call.told is not None and used:
        _tell(principal, trace_id, used, call.told)
    nodes = [source.node_id for source in sources if source.source_id in used and source.node_id]
    if is_new and call.told is not None and nodes:
        search(caller=principal, request=SearchRequest(node_ids=nodes))  # it reads in full what it used
    return is_new


def _earlier(principal: PrincipalIdentity, request: SearchRequest) -> UUID | None:
    """The trace of the same call of an earlier run; a call without a query is known by its mode."""
    query = request.query if request.mode == "search" else None
    with principal_session(principal):
        same = Trace.objects.filter(mode=request.mode, query=query).order_by("recorded_at", "id")
        return same.values_list("id", flat=True).first()


def _used(call: Call, sources: Sequence[SavedSource]) -> list[str]:
    used = [source.source_id for source in sources if source.provenance["identity"] in call.use]
    if call.told is not None:
        used += [source.source_id for source in sources if source.paths][:1]
    return list(dict.fromkeys(used))


def _climb(
    principal: PrincipalIdentity, trace_id: UUID, sources: Sequence[SavedSource], used: Sequence[str]
) -> None:
    looked_at = [source.source_id for source in sources[:LOOKED_AT] if source.source_id not in used]
    steps = [UseEntry(source_id=name, stage="selected") for name in looked_at]
    steps += [
        UseEntry.model_validate({"source_id": name, "stage": stage})
        for name in used
        for stage in STAGES[1 : USED + 1]
    ]
    if steps:
        with principal_session(principal):
            record_uses(trace_id=trace_id, idempotency_key=_key(trace_id, "uses"), uses=steps)


def _tell(principal: PrincipalIdentity, trace_id: UUID, used: Sequence[str], told: Told) -> None:
    confirmed = Outcome(ReceiptKind.CONFIRMED, "The answer was right when it was tried.", tuple(used))
    receipt = _record(principal, trace_id, "confirm", confirmed)
    if told.outcome == "corrected":
        corrected = Outcome(ReceiptKind.CORRECTED, told.reason, confirmation_id=receipt["receipt_id"])
        _record(principal, trace_id, "correct", corrected)


def _record(principal: PrincipalIdentity, trace_id: UUID, call: str, outcome: Outcome) -> dict[str, Any]:
    with principal_session(principal):
        return record_outcome(trace_id=trace_id, idempotency_key=_key(trace_id, call), outcome=outcome)


def _key(trace_id: UUID, call: str) -> str:
    return KEY.format(trace=trace_id, call=call)
