"""Queries of the routes about receipts, and their answers."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from apps.core.schemas import AwareTime, Handle, StrictModel
from apps.retrieval.receipts.schemas import ProfileStatus, ReceiptDocument


class ReceiptsQuery(StrictModel):
    """`GET /v1/receipts`. Times are half-open: since ≤ timestamp < until."""

    limit: Annotated[int, Field(ge=1, le=50)] = 10
    cursor: Handle | None = None
    since: AwareTime | None = None
    until: AwareTime | None = None
    profile: ProfileStatus | None = None


class NoQuery(StrictModel):
    """A route without parameters."""


class QueryReference(BaseModel):
    trace_id: str | None = Field(description="The home of the text; null where the trace is gone.")
    identity: str


class ProfileReference(BaseModel):
    id: str | None
    status: ProfileStatus


class RetrievalReceiptListed(BaseModel):
    receipt_id: str
    timestamp: str
    mode: Literal["search", "context"]
    query: QueryReference
    scopes: list[str] | None
    policy_id: str | None
    formula: Literal["weighted", "rank_fusion"]
    contract: str
    profile: ProfileReference
    candidates: int
    checksum: str


class RetrievalReceiptPage(BaseModel):
    receipts: list[RetrievalReceiptListed]
    next_cursor: str | None


class RetrievalReceiptShown(BaseModel):
    """`receipt` is the canonical document; its SHA-256 is `checksum`."""

    checksum: str
    receipt: ReceiptDocument
    receipt_id: str
    timestamp: str
    trace_id: str | None


class ScoreReplayed(BaseModel):
    node_id: str
    recorded: float
    replayed: float


class ReplayShown(BaseModel):
    """Of returned candidates only."""

    receipt_id: str
    checksum: str
    contract: str
    verified: bool = Field(description="Weights, every score and the order are equal, to the last bit.")
    candidates: int
    scores: list[ScoreReplayed]
    drifted: int
    weights_equal: bool
    order_equal: bool
