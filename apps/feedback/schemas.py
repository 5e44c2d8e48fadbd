"""Bodies of the calls about outcomes."""

from typing import Annotated, Literal

from pydantic import Field

from apps.core.schemas import AwareTime, Handle, StrictModel, Text

MAX_SOURCES_NAMED = 100
Reason = Annotated[Text, Field(min_length=1, max_length=1000)]


class OutcomeRequest(StrictModel):
    """`POST /v1/traces/{trace_id}/outcomes`. The key may come as the header `Idempotency-Key` instead.

    `confirmed` takes `source_ids`; `corrected` (the evidence was wrong) and `rolled_back` (the step was undone)
    take `confirmation_id`.
    """

    idempotency_key: Handle
    outcome: Literal["confirmed", "corrected", "rolled_back"]
    reason: Reason
    source_ids: Annotated[list[Handle], Field(min_length=1, max_length=MAX_SOURCES_NAMED)] | None = None
    confirmation_id: Handle | None = None


class HistoryQuery(StrictModel):
    """`GET /v1/traces`. Times are half-open: since ≤ timestamp < until."""

    limit: Annotated[int, Field(ge=1, le=50)] = 10
    cursor: Handle | None = None
    mode: Literal["search", "scan", "fetch", "context"] | None = None
    since: AwareTime | None = None
    until: AwareTime | None = None


class ActivationQuery(StrictModel):
    """`GET /v1/activation?source_id=…&source_id=…`."""

    source_id: Annotated[list[Handle], Field(min_length=1, max_length=50)]
