"""Answers of the routes of history, outcomes, judgments and citations, as the schema of the API shows them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from apps.traces.schemas import (
    ActivationShown,
    EdgeShown,
    MemoryPolicyShown,
    ProvenanceShown,
)

Cursor = Annotated[str | None, Field(description="Null on the last page.")]


class RetentionShown(BaseModel):
    class_: str = Field(alias="class")
    expires_at: str


class TraceShown(BaseModel):
    """A retrieval as it was answered. `query` is null where it was not kept or has been erased."""

    trace_id: str
    timestamp: str
    mode: Literal["search", "scan", "fetch", "context"]
    query: str | None
    request: dict[str, Any]
    settings: dict[str, Any]
    source_count: int
    retrieval_receipt_id: str | None
    retention: RetentionShown


class TracePage(BaseModel):
    traces: list[TraceShown]
    next_cursor: Cursor


class CurrentActivation(ActivationShown):
    label: Literal["current"]


class SourceShown(BaseModel):
    """A source of a trace with the stage that it reached in it."""

    source_id: str
    provenance: ProvenanceShown
    node_id: str | None
    axes: list[Literal["keyword", "graph"]]
    rank: int | None
    graph_rank: int | None
    hop: int | None
    score: float | None
    components: dict[str, Any]
    location: str
    folded_under: int | None
    paths: list[list[EdgeShown]]
    stage: Literal["retrieved", "selected", "validated", "used"]
    activation: CurrentActivation


class CreditShown(BaseModel):
    edge: EdgeShown
    delta: float
    credited_at: str
    active: bool


class ReceiptShown(BaseModel):
    """An action receipt with the credits that it gave; the other members are those of its answer."""

    receipt_id: str
    trace_id: str
    timestamp: str
    kind: Literal["use", "confirmed", "corrected", "rolled_back"]
    actor: Literal["principal", "staff"]
    non_applied_reason: str | None
    changes: list[dict[str, Any]]
    active_credits: list[CreditShown]


class CitationsStateShown(BaseModel):
    """What answers cited out of a context. An answer that cited nothing is not the same as no report."""

    state: Literal["none_reported", "reported_none", "cited"]
    sets: int
    cited_node_ids: list[str]


class TraceDetail(TraceShown):
    policy: MemoryPolicyShown
    citations: CitationsStateShown
    sources: list[SourceShown]
    audit: list[ReceiptShown]
    next_cursor: Cursor


class OutcomeSource(BaseModel):
    source_id: str
    provenance: ProvenanceShown
    axes: list[Literal["keyword", "graph"]]
    paths: list[list[EdgeShown]]


class OutcomeChange(BaseModel):
    """`delta` of a confirmation, `reversed_delta` and `confirmation_id` of a reversal."""

    edge: EdgeShown
    delta: float | None = None
    reversed_delta: float | None = None
    applied: bool
    reason: Literal["confirmed_path", "strength_cap_reached", "trace_already_credited", "reversed_credit"]
    confirmation_id: str | None = None


class OutcomeReceipt(BaseModel):
    """The answer to an outcome; the same again for the same key. `reason` is null where it was not kept."""

    receipt_id: str
    trace_id: str
    timestamp: str
    outcome: Literal["confirmed", "corrected", "rolled_back"]
    reason: str | None
    confirmation_id: str | None
    non_applied_reason: Literal["no_graph_path", "no_active_credits"] | None
    saved_sources: list[OutcomeSource]
    changes: list[OutcomeChange]


class LearnedEdge(BaseModel):
    """Strength as of `as_of`; it is not relevance and ranks nothing."""

    edge: EdgeShown
    strength: float
    updated_at: str
    as_of: str
    active_credits: int
    reversed_credits: int


class LearnedEdgePage(BaseModel):
    edges: list[LearnedEdge]
    next_cursor: Cursor


class SourceActivation(ActivationShown):
    source_id: str


class ActivationList(BaseModel):
    activation: list[SourceActivation]


class JudgmentShown(BaseModel):
    """A record of labels or of a withdrawal, as it was admitted. `reason` is null where it was not kept."""

    feedback_id: str
    receipt_id: str
    receipt_checksum: str
    timestamp: str = Field(description="Admission, by the server's clock.")
    kind: Literal["labels", "withdrawal"]
    surface: Literal["results", "context"]
    method: Literal["explicit_user", "structured_evaluation"]
    annotator: str
    node_ids: list[str] = Field(description="Of which the record speaks, in the receipt's order.")
    labels: dict[str, bool]
    grade: dict[str, int]
    supersedes: str | None
    withdraws: str | None
    reason: str | None


class JudgmentListed(JudgmentShown):
    in_force: list[str] = Field(description="Nodes whose label in this record is in force now.")


class JudgmentPage(BaseModel):
    judgments: list[JudgmentListed]
    next_cursor: Cursor


class CitationSetShown(BaseModel):
    citation_id: str
    receipt_id: str
    receipt_checksum: str
    context_sha256: str
    timestamp: str = Field(description="Admission, by the server's clock.")
    answer_id: str
    answer_sha256: str | None
    method: Literal["model_reported", "application_verified", "human_verified"]
    cited_node_ids: list[str]


class CitationSetListed(CitationSetShown):
    """A record in a list."""


class CitationPage(BaseModel):
    citations: list[CitationSetListed]
    state: CitationsStateShown
    next_cursor: Cursor


class RemovedEntry(BaseModel):
    node_id: str
    token_cost: int = Field(description="Of its lines, as the receipt has it.")


class AblationShown(BaseModel):
    """A context without some entries, as it was admitted. Tokens are of the whole texts."""

    ablation_id: str
    receipt_id: str
    receipt_checksum: str
    timestamp: str = Field(description="Admission, by the server's clock.")
    baseline_sha256: str
    counterfactual_sha256: str
    removed: list[RemovedEntry] = Field(description="In the order of the context.")
    tokenizer: str
    baseline_tokens: int
    counterfactual_tokens: int
    removed_tokens: int = Field(description="The difference.")


class AblationMade(AblationShown):
    counterfactual: str = Field(description="The context without the entries. Not kept.")


class AblationPage(BaseModel):
    ablations: list[AblationShown]
    next_cursor: Cursor


class AssessmentShown(BaseModel):
    """What the presence of a cited entry was worth, by the caller's own evaluation."""

    assessment_id: str
    ablation_id: str
    evaluation_id: str
    citation_id: str
    timestamp: str = Field(description="Admission, by the server's clock.")
    baseline_correct: bool
    counterfactual_correct: bool
    tier: Literal["load_bearing", "cited_non_flipping", "misleading", "cited_wrong_noncuring"]
    weight: float
    baseline_answer_sha256: str | None
    counterfactual_answer_sha256: str | None


class AssessmentListed(AssessmentShown):
    """As it was admitted."""


class AssessmentPage(BaseModel):
    assessments: list[AssessmentListed]
    next_cursor: Cursor
