"""Bodies of the calls about a trace. Members are never null; an absent member and a null one differ."""

from collections.abc import Collection
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field

from apps.core.problems import InvalidRequest
from apps.core.schemas import Handle, StrictModel, parse
from apps.traces.exceptions import INVALID

M = TypeVar("M", bound=BaseModel)

MAX_USES = 100


class UseEntry(StrictModel):
    """One step of one source."""

    source_id: Handle
    stage: Literal["selected", "validated", "used"]


class UsesRequest(StrictModel):
    """`POST /v1/traces/{trace_id}/uses`. The key may come as the header `Idempotency-Key` instead."""

    idempotency_key: Handle
    uses: Annotated[list[UseEntry], Field(min_length=1, max_length=MAX_USES)]


class PageRequest(StrictModel):
    """The query of a listing."""

    limit: Annotated[int, Field(ge=1, le=50)] = 10
    cursor: Handle | None = None


def parse_call(model: type[M], data: Any, *, nullable: Collection[str] = ()) -> M:
    """The body of a call as a model. Raises InvalidRequest `invalid_memory_request`, also for a null."""
    _refuse_nulls(data, "", nullable)
    return parse(model, data, code=INVALID)


def _refuse_nulls(value: Any, at: str, nullable: Collection[str]) -> None:
    if isinstance(value, dict):
        for name, member in value.items():
            if member is None and name not in nullable and isinstance(name, str) and len(name) <= 64:
                raise InvalidRequest(
                    "Null is not a value here; leave the field out", pointer=f"{at}/{name}", code=INVALID
                )
            _refuse_nulls(member, f"{at}/{name}", nullable)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            if member is None:
                raise InvalidRequest("Null is not a value here", pointer=f"{at}/{index}", code=INVALID)
            _refuse_nulls(member, f"{at}/{index}", nullable)


class ActivationShown(BaseModel):
    """Decaying interest in a source version: both channels as of `as_of`. It ranks nothing."""

    retrieved: float
    usage: float
    total: float
    updated_at: str | None = Field(description="Last write; null where there was none.")
    as_of: str


class UseChange(BaseModel):
    source_id: str
    stage: Literal["selected", "validated", "used"]
    applied: bool = Field(description="False where the source had got there already.")
    activation: ActivationShown


class UseReceipt(BaseModel):
    """The answer to a call of uses; the same again for the same key."""

    receipt_id: str
    trace_id: str
    timestamp: str
    non_applied_reason: None
    uses: list[UseEntry]
    saved_sources: list[str]
    changes: list[UseChange]


class ProvenanceShown(BaseModel):
    """Of what the source id is made, and the index's version of a live body."""

    repo: str
    type: str
    identity: Any
    version: str
    content_source: Literal["index", "github_live", "memory"]
    index_updated_at: str | None = None


class EdgeShown(BaseModel):
    """A mention in its own direction."""

    repo: str
    src: str
    dst: str
    kind: str


class ExclusionShown(BaseModel):
    location: str
    reason: str


class MemoryRecording(BaseModel):
    """What of an answer was recorded; locations are positional."""

    status: Literal["complete", "partial", "unresolved"]
    recorded_sources: int
    excluded_sources: int
    exclusions: list[ExclusionShown]
    excluded_graph_paths: int
    graph_exclusions: list[ExclusionShown]


class IncrementsShown(BaseModel):
    retrieved: float
    selected: float
    validated: float
    used: float


class MemoryPolicyShown(BaseModel):
    id: str
    version: int
    half_life_s: float
    increments: IncrementsShown
