"""The answer of a search, as the schema of the API shows it."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from apps.retrieval.packing import Format, Guidance, Ordering, Reason, Representation, Tier
from apps.traces.schemas import (
    ActivationShown,
    EdgeShown,
    MemoryPolicyShown,
    MemoryRecording,
    ProvenanceShown,
)


class Marked(BaseModel):
    """What a row says of its source: an id to give feedback on, or why there is none."""

    source_id: str | None = None
    provenance: ProvenanceShown | None = None
    activation: ActivationShown | None = None
    feedback_available: Literal[False] | None = None
    memory_exclusion_reason: (
        Literal["canonical_identity_unavailable", "live_version_unavailable", "withheld"] | None
    ) = None


class EntityMember(BaseModel):
    node_id: str
    source_id: str | None = None
    version_status: Literal["latest", "superseded"] | None = None
    feedback_available: Literal[False] | None = None
    memory_exclusion_reason: str | None = None


class SameEntity(BaseModel):
    """Rows that this one stands for."""

    count: int
    others: list[EntityMember]


class ResultRow(Marked):
    node_id: str
    rank: int
    score: float | None = None
    kind: str
    subkind: str | None = None
    type: str | None = None
    title: str
    content: str
    content_truncated: Literal[True] | None = None
    path: str | None = None
    url: str | None = None
    labels: list[str] | None = None
    state: str | None = None
    event_at: str | None = None
    updated_at: str
    version_status: Literal["latest", "superseded"] | None = None
    epistemic: str | None = Field(None, description="What the row is, where all were asked for.")
    withdrawn: Literal["archived", "superseded"] | None = Field(
        None, description="Only where all were asked for."
    )
    features: dict[str, float] | None = None
    same_entity: SameEntity | None = None
    observation_id: str | None = Field(None, description="Where the journal keeps a record of this search.")


class HintRow(BaseModel):
    """A row of another scope. It is no source of the trace; fetch it by its id to use it."""

    node_id: str
    scope: str
    rank: int = Field(description="Among the hints.")
    score: float = Field(description="Comparable with the scores of the rows.")
    kind: str
    subkind: str | None = None
    type: str | None = None
    title: str
    content: str
    content_truncated: Literal[True] | None = None
    path: str | None = None
    url: str | None = None
    labels: list[str] | None = None
    state: str | None = None
    event_at: str | None = None
    updated_at: str
    version_status: Literal["latest", "superseded"] | None = None
    epistemic: str | None = None
    withdrawn: Literal["archived", "superseded"] | None = None


class GraphResultRow(Marked):
    """A page within two mentions of a ranked one. It has no score."""

    node_id: str
    hop: int
    type: str
    title: str
    slug: str
    graph_path: list[EdgeShown]
    learned_strength: float | None = Field(None, description="Strength of past confirmations; not relevance.")
    graph_feedback_available: Literal[False] | None = None
    graph_feedback_exclusion_reason: Literal["unverifiable_graph_path"] | None = None


class WhyEmpty(BaseModel):
    """Out of the caller's own visible data only."""

    filters_unmatched: list[str] | None = None
    removed_by_filters: int
    below_threshold: int
    archived: int


class ObservationMeta(BaseModel):
    """There only where the record of this search is durable."""

    observation_id: str = Field(alias="retrieval/observation_id")
    persistence: Literal["durable"] = Field(alias="retrieval/persistence")


class ProfileUsed(BaseModel):
    """What the active ranking profile of the request's scope set did. `reason` says why it did not apply."""

    id: str | None
    status: Literal["none", "applied", "inapplicable", "request_override"]
    reason: Literal["scorer_contract", "formula", "scoring_policy", "expired"] | None


class ContextEntry(BaseModel):
    number: int = Field(description="As the text names it.")
    node_id: str
    tier: Tier
    representation: Representation
    token_cost: int
    has_content: bool = Field(
        description="Whether the text carries this source's words, which then are whole."
    )


class LeftOutOfContext(BaseModel):
    node_id: str
    reason: Reason


class PackedContextShown(BaseModel):
    """The rows as one text. Sources stand in it whole, as references, or not at all."""

    text: str = Field(description="Empty where nothing fitted.")
    sha256: str = Field(description="Of the text's UTF-8 bytes; the receipt keeps it.")
    token_budget: int
    used_tokens: int
    tokenizer: str
    packing: str
    ordering: Ordering
    format: Format
    guidance: Guidance
    entries: list[ContextEntry]
    left_out: list[LeftOutOfContext]


class SearchAnswer(BaseModel):
    """Without `trace_id` the call was not recorded, and `memory_error` says why; the rows are there all the same."""

    trace_id: str | None = None
    retrieval_receipt_id: str | None = None
    timestamp: str | None = None
    mode: Literal["search", "scan", "fetch"]
    feedback_available: bool
    memory_unavailable: Literal[True] | None = None
    memory_error: Literal["retrieval_incomplete", "memory_save_failed", "all_sources_unresolved"] | None = (
        None
    )
    receipt_persisted: Literal[False] | None = None
    memory_policy: MemoryPolicyShown | None = None
    memory_recording: MemoryRecording | None = None
    results: list[ResultRow]
    graph_results: list[GraphResultRow] | None = None
    graph_truncated: bool | None = None
    cross_scope_hints: list[HintRow] | None = None
    rerank_applied: bool | None = Field(
        None, description="Whether an installed reranker scored the first rows."
    )
    extension_errors: dict[str, str] | None = Field(
        None,
        description="Why a reranker, a query analysis or the hints did not answer; the rows stand without.",
    )
    profile: ProfileUsed | None = None
    channels: list[dict[str, Any]] | None = None
    excluded: dict[str, int] | None = None
    surfaces: list[dict[str, Any]] | None = None
    window: dict[str, str] | None = None
    not_found: list[str] | None = None
    why_empty: WhyEmpty | None = None
    meta: ObservationMeta | None = Field(None, alias="_meta")
    context: PackedContextShown | None = None
