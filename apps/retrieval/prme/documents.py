"""PRME's receipt and label record as strict documents (format of PRME 0.15.0, schema versions 1 to 22).

Every model refuses unknown keys, non-finite numbers and loose types. Which field a schema version may,
must or must not carry is not said here but in `versions`; a field that a version lacks is None.
"""

import math
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    Field,
    StrictBool,
    StringConstraints,
    model_validator,
)

from apps.core.schemas import StrictModel, Text

# Ids order as lower-case strings, so another spelling of the same UUID would sort elsewhere.
NodeId = Annotated[
    str, StringConstraints(pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Scope = Literal["personal", "project", "organisation", "agent", "system", "sandbox"]
Representation = Literal["reference", "key_value", "structured", "prose", "full"]
RankingPolicy = Literal["score_path_id", "reranked_prefix", "score_id"]
Formula = Literal["none", "weighted", "rank_fusion"]
AdjustmentKind = Literal[
    "neural_blend",
    "neural_rank_assignment",
    "session_decay",
    "episode_decay",
    "evidence_projection",
    "evidence_augmentation",
    "current_update",
]
TEXT_REPRESENTATIONS = frozenset({"structured", "prose", "full"})

Probability = Annotated[float, Field(ge=0, le=1)]
Decay = Annotated[float, Field(gt=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Rank = Annotated[int, Field(ge=1)]


class OmittingDocument(StrictModel):
    """A document with fields that PRME leaves out instead of writing a neutral value.

    Such a value, written all the same, would change the checksum that PRME computes, and is refused.
    """

    left_out_when_unset: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="after")
    def _no_explicit_neutral_value(self) -> Self:
        for name in self.left_out_when_unset & self.model_fields_set:
            value = getattr(self, name)
            if value is None or value is False:
                raise ValueError(f"{name} is left out when it is not set")
        return self


class ScoreTrace(StrictModel):
    """The feature vector of one memory, and the score that came of it before any adjustment."""

    semantic_similarity: float
    lexical_relevance: float
    graph_proximity: float
    recency_factor: float
    salience: float
    confidence: float
    epistemic_weight: float
    path_score: float
    temporal_affinity: float
    node_type_boost: float
    composite_score: float


class ScoringWeights(OmittingDocument):
    """Weights as configured (`scoring`) or as applied to one request (`weights` of a provenance)."""

    left_out_when_unset = frozenset({"fusion", "rrf_k", "rrf_recency_boost", "rrf_tie_break", "recency_time"})

    w_semantic: float
    w_lexical: float
    w_graph: float
    w_recency: float
    w_salience: float
    w_confidence: float
    w_epistemic: float
    w_paths: float
    recency_lambda: float
    temporal_boost: float
    node_type_boost: dict[str, float]
    relevance_floor: float
    current_update_multiplier: Annotated[float, Field(ge=1, le=2)] = 1.0
    fusion: Literal["rrf"] | None = None
    rrf_k: Annotated[int, Field(ge=1, le=10_000)] | None = None
    rrf_recency_boost: Annotated[float, Field(gt=0, le=4)] | None = None
    rrf_tie_break: Literal["event_time"] | None = None
    recency_time: Literal["event_time"] | None = None

    @property
    def additive(self) -> tuple[float, float, float, float, float, float]:
        """The six additive weights in the order of the formula."""
        return (
            self.w_semantic,
            self.w_lexical,
            self.w_graph,
            self.w_recency,
            self.w_salience,
            self.w_confidence,
        )

    @property
    def fusion_options(self) -> tuple[float | None, str | None]:
        """Recency boost and tie break of rank fusion."""
        return self.rrf_recency_boost, self.rrf_tie_break

    @model_validator(mode="after")
    def _weights_belong_together(self) -> Self:
        # The tolerance is the reference's own.
        if abs(sum(self.additive) - 1.0) > 1e-6:
            raise ValueError("the six additive weights do not sum to 1")
        if (self.fusion is None) != (self.rrf_k is None):
            raise ValueError("rrf_k is recorded exactly with rank fusion")
        if self.fusion is None and self.fusion_options != (None, None):
            raise ValueError("rank fusion options need rank fusion")
        if self.fusion is not None and self.recency_time is not None:
            raise ValueError("recency_time belongs to the weighted formula")
        return self


class Packing(OmittingDocument):
    """Settings of context packing and of the expansions before it."""

    left_out_when_unset = frozenset(
        {"session_context_rank_fusion_score_decay", "session_context_packing", "fold_repeated_text"}
    )

    multipath_ordering: Literal["density", "score", "balanced"] = "density"
    context_guidance_mode: Literal["off", "temporal", "all"] = "off"
    context_format: Literal["auditable", "compact", "reader"] = "auditable"
    context_citations: StrictBool = False
    token_budget: Count
    tokenizer: Text
    min_fidelity: Representation
    overhead_tokens: Count
    chars_per_token: Annotated[float, Field(gt=0)]
    graph_max_candidates: Count
    vector_k: Count
    lexical_k: Count
    graph_max_hops: Annotated[int, Field(ge=1, le=3)]
    cross_scope_top_n: Count
    cross_scope_token_budget: Count
    session_context_window: int
    session_context_top_k: int
    session_context_score_decay: float
    session_context_rank_fusion_score_decay: Decay | None = None
    session_context_packing: Literal["trigger_tier", "adjacent"] | None = None
    fold_repeated_text: StrictBool = False
    episode_context_top_k: Count = 0
    episode_context_local_k: Annotated[int, Field(ge=1)] = 8
    episode_context_score_decay: Decay = 0.95
    evidence_projection_top_k: Count = 0
    evidence_projection_max_sources: Annotated[int, Field(ge=1)] = 1
    evidence_projection_score_decay: Decay = 1.0
    evidence_augmentation_top_k: Count = 0
    evidence_augmentation_max_sources: Annotated[int, Field(ge=1)] = 1
    evidence_augmentation_score_decay: Decay = 0.99
    evidence_augmentation_anchor_policy: Literal["all", "non_entity"] = "all"
    aggregation_k_multiplier: float
    aggregation_k_max: int

    @model_validator(mode="after")
    def _settings_belong_together(self) -> Self:
        if self.evidence_projection_top_k > 0 and self.evidence_augmentation_top_k > 0:
            raise ValueError("evidence projection and augmentation exclude each other")
        if self.context_citations and self.context_format != "reader":
            raise ValueError("context_citations belongs to the reader format")
        if self.fold_repeated_text and self.context_format != "reader":
            raise ValueError("fold_repeated_text belongs to the reader format")
        return self


class Adjustment(StrictModel):
    """One recorded operation on a score after the formula."""

    kind: AdjustmentKind
    coefficient: float
    neural_score: Probability | None = None
    source_node_id: NodeId

    @model_validator(mode="after")
    def _coefficient_fits_kind(self) -> Self:
        if (self.kind == "neural_blend") != (self.neural_score is not None):
            raise ValueError("neural_score belongs to neural_blend")
        low, high = _COEFFICIENT_BOUNDS.get(self.kind, (None, None))
        if (low is not None and self.coefficient < low) or (high is not None and self.coefficient > high):
            raise ValueError(f"coefficient outside of the bounds of {self.kind}")
        if self.kind in ("evidence_projection", "evidence_augmentation") and self.coefficient == 0:
            raise ValueError(f"coefficient outside of the bounds of {self.kind}")
        return self


_COEFFICIENT_BOUNDS: dict[str, tuple[float | None, float | None]] = {
    "neural_blend": (0.0, 1.0),
    "neural_rank_assignment": (0.0, None),
    "evidence_projection": (0.0, 1.0),
    "evidence_augmentation": (0.0, 1.0),
    "current_update": (1.0, 2.0),
}


class RankFusion(OmittingDocument):
    """Inputs of formula 2: competition ranks (None: not on that channel) and pool-relative factors."""

    left_out_when_unset = frozenset({"recency_boost_factor", "tie_break"})

    semantic_rank: Rank | None
    lexical_rank: Rank | None
    epistemic_factor: Probability
    node_type_factor: Probability
    temporal_factor: Probability
    recency_boost_factor: Probability | None = None
    tie_break: Annotated[float, Field(ge=0, lt=1)] | None = None


class ScoreProvenance(OmittingDocument):
    """What one score was computed from; `base_node_id` is another memory where the score is inherited."""

    left_out_when_unset = frozenset({"rank_fusion"})

    formula_version: Literal[1, 2]
    base_node_id: NodeId
    trace: ScoreTrace
    weights: ScoringWeights
    adjustments: tuple[Adjustment, ...]
    rank_fusion: RankFusion | None = None

    @model_validator(mode="after")
    def _formula_has_its_inputs(self) -> Self:
        fused = self.weights.fusion is not None
        if (self.formula_version == 2) != fused or (self.rank_fusion is not None) != fused:
            raise ValueError("formula_version, weights and rank_fusion do not name one formula")
        if self.rank_fusion is not None:
            boost, tie_break = self.weights.fusion_options
            if self.rank_fusion.recency_boost_factor is not None and boost is None:
                raise ValueError("a recency boost factor needs the setting")
            if (self.rank_fusion.tie_break is None) != (tie_break is None):
                raise ValueError("a tie break is recorded exactly with the setting")
        return self


class Candidate(OmittingDocument):
    """One returned memory, in returned order."""

    left_out_when_unset = frozenset({"semantic_relevance"})

    node_id: NodeId
    scope: Scope
    content_sha256: Sha256
    score: float
    trace: ScoreTrace | None
    reranker_score: float | None
    semantic_relevance: Annotated[float, Field(ge=0)] | None = None
    representation: Representation | None
    token_cost: Count
    in_context: StrictBool
    has_content: StrictBool

    @property
    def path_score(self) -> float:
        """How many channels returned it, as a share; 0 for an inherited score."""
        return 0.0 if self.trace is None else self.trace.path_score

    @model_validator(mode="after")
    def _content_is_in_context(self) -> Self:
        if self.has_content and not (self.in_context and self.representation in TEXT_REPRESENTATIONS):
            raise ValueError("has_content needs an entry of the context that carries text")
        return self


def _finite(value: Any) -> Any:
    """Refuse a literal beyond the range of doubles inside a free-form map."""
    if isinstance(value, dict):
        for member in value.values():
            _finite(member)
    elif isinstance(value, list):
        for member in value:
            _finite(member)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError("number is not finite")
    return value


FreeForm = Annotated[dict[str, Any], AfterValidator(_finite)]


class Execution(StrictModel):
    """What the request and the installation were; both maps are free of form."""

    schema_version: Literal[1]
    parameters: FreeForm
    features: FreeForm


class ReceiptDocument(OmittingDocument):
    """One receipt. Parsed by `reading.parse_receipt`, which also applies the rules of its version."""

    left_out_when_unset = frozenset({"min_score_skipped"})

    schema_version: Annotated[int, Field(ge=1, le=22)]
    request_id: NodeId
    user_id: Annotated[Text, StringConstraints(min_length=1)]
    query: Text
    reference_time: AwareDatetime
    scopes: tuple[Scope, ...] | None
    scoring: ScoringWeights
    packing: Packing
    context_sha256: Sha256
    min_score: float | None
    min_score_skipped: StrictBool = False
    result_limit: int | None
    retrieval_mode: Literal["default", "explicit"]
    time_from: AwareDatetime | None
    time_to: AwareDatetime | None
    candidates: tuple[Candidate, ...]
    score_provenance: dict[NodeId, ScoreProvenance] | None = None
    ranking_policy: RankingPolicy | None = None
    execution: Execution | None = None

    @property
    def provenances(self) -> tuple[ScoreProvenance, ...]:
        return tuple((self.score_provenance or {}).values())

    @property
    def is_rank_fused(self) -> bool:
        """Whether scores come from formula 2."""
        return self.scoring.fusion is not None or any(p.formula_version == 2 for p in self.provenances)

    @property
    def formula(self) -> Formula:
        """Which formula the scores replay by; `none` for version 1."""
        if self.schema_version == 1:
            return "none"
        return "rank_fusion" if self.is_rank_fused else "weighted"

    @property
    def scope_key(self) -> tuple[str, ...] | None:
        """Sorted distinct scopes; None means unfiltered and equals only None."""
        return None if self.scopes is None else tuple(sorted(set(self.scopes)))


class LabelRecord(StrictModel):
    """Explicit relevance labels that one person or evaluation gave on one receipt."""

    schema_version: Literal[1] = 1
    feedback_id: NodeId
    request_id: NodeId
    labels: Annotated[dict[NodeId, StrictBool], Field(min_length=1)]
    surface: Literal["results", "context"] = "results"
    method: Literal["explicit_user", "structured_evaluation"] = "explicit_user"
    user_id: Annotated[Text, StringConstraints(min_length=1)]
    recorded_at: AwareDatetime
    receipt_checksum: Sha256
