"""The front door: find, record, answer.

The law: the answer is rendered after the commit of its trace, so a trace id is never handed out for a trace that
was rolled back. What is not recorded is said to be not recorded, and costs no rows. What the journal could not take
is answered as if there were no journal.
"""

import time
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import structlog
from django.db import DatabaseError

from apps.core import clock
from apps.core.db.cursors import ask
from apps.core.db.identity import PrincipalIdentity
from apps.core.db.sessions import principal_session
from apps.core.ids import uuid7
from apps.core.text import SEARCH_BUDGET, Fitted, fit_budget
from apps.learning.alerts import tell_inapplicable
from apps.retrieval.packing import PackedContext
from apps.retrieval.receipts.document import NewReceipt, ProfileUse
from apps.retrieval.services import key_of, writing_receipt
from apps.search import live
from apps.search.context import context_shown, pack_found
from apps.search.found import Found, find
from apps.search.metrics import PROFILES, SEARCHES
from apps.search.observed import TEXTS, Asked, observed, ticket_for
from apps.search.rows import returned
from apps.search.schemas import SearchRequest
from apps.traces.api_base import retried
from apps.traces.exceptions import SaveFailed
from apps.traces.recording import Mark, Recording, record
from apps.traces.services.save import NewTrace, SavedTrace, Saving, writing_trace

log = structlog.get_logger(__name__)

RETRIEVAL_INCOMPLETE = "retrieval_incomplete"
SAVE_FAILED = "memory_save_failed"
ALL_UNRESOLVED = "all_sources_unresolved"

TIMEOUTS = {"lock_timeout": "1s", "statement_timeout": "2s"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the recording went: a saved trace, or why there is none."""

    saved: SavedTrace | None = None
    recording: Recording | None = None
    error: str | None = None

    @property
    def status(self) -> str:
        return str(self.recording.document["status"]) if self.recording else "none"


def search(*, caller: PrincipalIdentity, request: SearchRequest, verified: bool = False) -> Fitted:
    """Answer a search of any mode, outside of any session; the trace is committed when it returns.

    verified: a credential of this very call names the caller, without which the journal takes nothing. An id of an
    observation in the answer is that of a committed record.
    Raises RetrievalFailed, InvalidRequest (a multiplier), ResponseTooLarge.
    """
    started = time.perf_counter()
    at = clock.now()
    retrieved = found = find(caller, request, at=at)
    if request.include_content and request.mode == "search":
        found = replace(found, rows=live.inlined(found.rows))
    context = pack_found(request, found)
    outcome = _record(caller, request, found, context, started)
    SEARCHES.labels(request.mode, outcome.error or outcome.status).inc()
    _tell_of_profile(caller, request, found.profile)
    ticket = ticket_for(caller, request, verified=verified, traced=outcome.saved is not None)
    document = _document(request, found, outcome)
    if context is not None:
        document["context"] = context_shown(context)
    if ticket is not None and outcome.saved is not None:
        answer = observed(ticket, caller, document, Asked(request, retrieved, outcome.saved.id))
        if answer is not None:
            return answer
    return fit_budget(document, budget=SEARCH_BUDGET, texts=TEXTS, whole_first=request.mode == "fetch")


def _tell_of_profile(caller: PrincipalIdentity, request: SearchRequest, use: ProfileUse) -> None:
    """Count how searches are ranked; an active profile that does not apply needs a human."""
    if request.mode != "search":
        return
    PROFILES.labels(use.status, use.reason or "").inc()
    if use.status == "inapplicable" and use.id is not None:
        try:
            tell_inapplicable(caller.workspace_id, use.id, use.reason or "")
        except DatabaseError:
            # The rows are found and recorded; the next search tells again.
            log.error("alarm of a profile not raised")


def _record(
    caller: PrincipalIdentity,
    request: SearchRequest,
    found: Found,
    context: PackedContext | None,
    started: float,
) -> Outcome:
    if found.partial:
        return Outcome(error=RETRIEVAL_INCOMPLETE)
    try:
        recording = record(returned(found.rows, found.graph))
        if recording.unresolved:
            return Outcome(recording=recording, error=ALL_UNRESOLVED)
        now = clock.now()
        receipt = _receipt(found, context, now)
        new = NewTrace(
            mode=request.mode,
            query=request.query if request.mode == "search" else None,
            request=request.kept(request.reference_time or now),
            settings=found.settings,
            scopes=request.scope_set,
            recording=recording,
            recorded_at=now,
            latency_ms=round((time.perf_counter() - started) * 1000),
            id=receipt.trace_id if receipt and receipt.trace_id else uuid7(),
            retrieval_receipt_id=receipt.id if receipt else None,
            profile_id=found.profile.id if found.profile.status == "applied" else None,
            context_tokens=context.used_tokens if context else None,
        )
        return Outcome(_save(caller, new, receipt), recording)
    except SaveFailed:
        log.error("trace not saved")
    except Exception:
        # Whatever went wrong with the memory, the rows are there and are answered.
        log.error("trace not saved for an unexpected reason")
    return Outcome(error=SAVE_FAILED)


def _receipt(found: Found, context: PackedContext | None, now: datetime) -> NewReceipt | None:
    """The receipt of a ranked answer; scans and fetches score nothing."""
    if found.retrieval is None or found.asked is None:
        return None
    return NewReceipt(
        request=found.asked,
        retrieval=found.retrieval,
        recorded_at=now,
        trace_id=uuid7(),
        profile=found.profile,
        context=context,
    )


def _save(caller: PrincipalIdentity, new: NewTrace, receipt: NewReceipt | None) -> SavedTrace:
    """The trace and its receipt, both or neither; what is read comes in one round trip, what is written in another."""

    def once() -> SavedTrace:
        saving, key = Saving(caller.workspace_id), key_of(caller.principal_id)
        with principal_session(caller, limits=TIMEOUTS, along=(*saving.questions, key)):
            trace = writing_trace(new=new, policy=saving.policy)
            if receipt is None:
                ask(trace)
            else:
                ask(trace, writing_receipt(new=receipt, key=key.answer))
            return trace.answer

    return retried(once, on_failure=lambda: SaveFailed("storage"))


def _document(request: SearchRequest, found: Found, outcome: Outcome) -> dict[str, Any]:
    document = _head(outcome) | {"mode": request.mode}
    document["results"] = _results(request, found, outcome)
    if request.mode == "search" and request.graph_expand:
        document["graph_results"] = _graph_results(found, outcome)
    if found.why_empty is not None:
        document["why_empty"] = dict(found.why_empty)
    return document | dict(found.shown)


def _head(outcome: Outcome) -> dict[str, Any]:
    recording = {"memory_recording": outcome.recording.document} if outcome.recording else {}
    saved = outcome.saved
    if saved is None:
        failed = {"memory_unavailable": True, "feedback_available": False, "memory_error": outcome.error}
        persisted = {"receipt_persisted": False} if outcome.error == SAVE_FAILED else {}
        return failed | persisted | recording
    return {
        "trace_id": str(saved.id),
        "retrieval_receipt_id": str(saved.retrieval_receipt_id) if saved.retrieval_receipt_id else None,
        "timestamp": clock.iso(saved.recorded_at),
        "feedback_available": True,
        "memory_policy": saved.policy.shown(),
    } | recording


def _results(request: SearchRequest, found: Found, outcome: Outcome) -> list[dict[str, Any]]:
    explicit = request.epistemic_mode == "explicit"
    rows = []
    for index, row in enumerate(found.rows):
        place = f"results[{index}]"
        shown = row.document(explain=request.explain, explicit=explicit) | _marked(outcome, place)
        if row.others:
            others = [
                {"node_id": str(member.node_id)}
                | ({"version_status": member.status} if member.status else {})
                | _marked(outcome, f"{place}.same_entity.others[{number}]", brief=True)
                for number, member in enumerate(row.others)
            ]
            shown["same_entity"] = {"count": len(others), "others": others}
        rows.append(shown)
    return rows


def _graph_results(found: Found, outcome: Outcome) -> list[dict[str, Any]]:
    return [
        row.document() | _marked(outcome, f"graph_results[{index}]") for index, row in enumerate(found.graph)
    ]


def _marked(outcome: Outcome, place: str, *, brief: bool = False) -> dict[str, Any]:
    """What a row says of its source. Without a trace there is nothing to give feedback on."""
    if outcome.recording is None:
        return {}
    mark: Mark = outcome.recording.marks[place]
    if mark.source_id is None:
        return {"feedback_available": False, "memory_exclusion_reason": mark.exclusion}
    shown: dict[str, Any] = {"source_id": mark.source_id}
    if not brief:
        shown["provenance"] = mark.provenance()
        if outcome.saved is not None:
            shown["activation"] = outcome.saved.activation[mark.source_id].document()
    if mark.path_exclusion is not None:
        shown |= {"graph_feedback_available": False, "graph_feedback_exclusion_reason": mark.path_exclusion}
    return shown
