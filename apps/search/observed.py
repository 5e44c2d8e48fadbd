"""The journal's part of an answer: a ticket, the fields, the record; or the answer as if there were no journal."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from apps.core.db.identity import PrincipalIdentity
from apps.core.problems import ResponseTooLarge
from apps.core.text import RESERVED, SEARCH_BUDGET, Fitted, fit_budget, render_json
from apps.observations.admission import Served, Ticket, admit
from apps.observations.events import Answered, RankedHit, content_hash, event_of
from apps.observations.exceptions import NotStored
from apps.observations.services import records
from apps.search import hints
from apps.search.found import Found
from apps.search.rows import ShownRow
from apps.search.schemas import SearchRequest
from apps.sources.identity import MEMORY_REPO

TEXTS = (("results", "content"), hints.TEXTS)
"""Where the texts of an answer are that its budget may cut."""

OBSERVATION_ID = "retrieval/observation_id"
PERSISTENCE = "retrieval/persistence"


def ticket_for(
    caller: PrincipalIdentity, request: SearchRequest, *, verified: bool, traced: bool
) -> Ticket | None:
    """After retrieval and before the answer is shaped. Scans and fetches have no query to observe."""
    if request.mode != "search":
        return None
    shared_only = request.corpus == "shared"
    return admit(Served(caller=caller, verified=verified, traced=traced, shared_only=shared_only))


def observed(
    ticket: Ticket, caller: PrincipalIdentity, document: dict[str, Any], asked: "Asked"
) -> Fitted | None:
    """The answer with the journal's fields, its record committed; None where it is to go out without them."""
    marked = document | {"results": [row | {"observation_id": str(ticket.id)} for row in document["results"]]}
    try:
        fitted = fit_budget(marked, budget=SEARCH_BUDGET, texts=TEXTS, reserve=RESERVED)
        answer = _with_meta(fitted, {OBSERVATION_ID: str(ticket.id), PERSISTENCE: "durable"})
        event = event_of(ticket, asked.answered(answer.body))
    except ResponseTooLarge:
        return None
    except NotStored as refused:
        records.not_stored(refused.code)
        return None
    except Exception:
        # Nothing of the journal may fail a search, nor end in a log with what it holds.
        records.not_stored(records.FAILED)
        return None
    return answer if records.store(caller=caller, event=event) else None


def _with_meta(fitted: Fitted, meta: dict[str, Any]) -> Fitted:
    """The answer with one more member, its body not rendered a second time: an answer has members before it."""
    body = b'%b,"_meta":%b}' % (fitted.body[:-1], render_json(meta))
    return Fitted(fitted.document | {"_meta": meta}, body, fitted.cap)


class Asked:
    """What was asked and ranked, before live texts took the place of indexed ones."""

    def __init__(self, request: SearchRequest, found: Found, trace_id: UUID | None) -> None:
        self._request, self._found, self._trace_id = request, found, trace_id

    def answered(self, body: bytes) -> Answered:
        found = self._found
        omitted = found.retrieval.omitted if found.retrieval else 0
        return Answered(
            query=self._request.query,
            ranked=_ranked(found.rows),
            available=len(found.rows) + omitted,
            body=body,
            trace_id=self._trace_id,
            ranking_profile_id=found.profile.id,
        )


def _ranked(rows: Sequence[ShownRow]) -> list[RankedHit]:
    return [
        RankedHit(
            id=row.node_id,
            source=None if row.provenance.repo == MEMORY_REPO else row.provenance.repo,
            filename=row.path,
            content=row.content,
            # Retrieval reads whole texts, so that what it read is what is indexed.
            indexed_hash=content_hash(row.content),
        )
        for row in rows
    ]
