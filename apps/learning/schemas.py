"""Documents of learning: configurations, the gate policy, trials and reports.

Field names that PRME also has are PRME's, so that its readers find them.
"""

import math
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AliasChoices,
    BaseModel,
    Field,
    StringConstraints,
    model_validator,
)

from apps.core.schemas import FilledText, StrictModel, Text
from apps.learning.bootstrap import Resampling
from apps.learning.fit import ALGORITHM, IMPLEMENTATION_VERSION
from apps.learning.receipt_set import Surface
from apps.learning.scorer import FEATURES, MULTIPLIER_HIGH, MULTIPLIER_LOW, FloatArray

# Whole numbers that canonical JSON carries exactly.
_MAX_SEED = 2**53 - 1


Multiplier = Annotated[float, Field(ge=MULTIPLIER_LOW, le=MULTIPLIER_HIGH)]
Share = Annotated[float, Field(ge=0, le=1)]
Seed = Annotated[int, Field(ge=-_MAX_SEED, le=_MAX_SEED)]
Samples = Annotated[int, Field(ge=100, le=10_000)]
Cutoff = Annotated[int, Field(ge=1, le=1000)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[FilledText, StringConstraints(max_length=512)]
Identity = Annotated[Text, StringConstraints(min_length=1, max_length=512)]
Interval = tuple[float, float]


class RankingMultipliers(StrictModel):
    """Factors on the six additive weights; unity is the scorer as configured."""

    semantic: Multiplier = 1.0
    lexical: Multiplier = 1.0
    graph: Multiplier = 1.0
    recency: Multiplier = 1.0
    salience: Multiplier = 1.0
    confidence: Multiplier = 1.0

    @classmethod
    def of(cls, values: FloatArray) -> Self:
        """From an array (6,) in the order of FEATURES."""
        return cls(**dict(zip(FEATURES, values.tolist(), strict=True)))

    def values(self) -> list[float]:
        """Six numbers in the order of FEATURES."""
        return [getattr(self, name) for name in FEATURES]


class LearningConfig(StrictModel):
    """Settings of an offline evaluation."""

    seed: Seed = 42
    validation_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.3
    min_training_queries: Annotated[int, Field(ge=2)] = 20
    min_validation_queries: Annotated[int, Field(ge=2)] = 20
    regularization: Annotated[float, Field(gt=0)] = 0.01
    margin_scale: Annotated[float, Field(gt=0, le=100)] = 5.0
    passes_per_step: Annotated[
        int, Field(ge=1, le=20, validation_alias=AliasChoices("passes_per_step", "passes"))
    ] = 4
    ndcg_k: Cutoff = 10
    bootstrap_samples: Samples = 2000
    min_ndcg_gain: Share = 0.01
    max_pairs_per_request: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    max_records: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000


class HoldoutConfig(StrictModel):
    """Settings and gate of a full-retrieval holdout.

    `protected_slices` maps a slice to the mean NDCG gain that it must at least have (a negative number
    allows that much loss).
    """

    seed: Seed = 42
    k: Cutoff = 10
    min_query_groups: Annotated[int, Field(ge=2, le=100_000)] = 20
    bootstrap_samples: Samples = 2000
    min_ndcg_gain: Share = 0.01
    max_regression_fraction: Share = 0.1
    protected_slices: dict[Name, Annotated[float, Field(ge=-1, le=1)]] = {}


class GatePolicy(StrictModel):
    """Stored policy of kind `gate`: what a promotable evaluation and holdout must at least ask for."""

    evaluation: LearningConfig = LearningConfig()
    holdout: HoldoutConfig = HoldoutConfig()
    annotators: Literal["conflict", "majority"] = "conflict"
    four_eyes_in_admin: bool = True
    four_eyes_in_api: bool = False
    retention_days: Annotated[int, Field(ge=30, le=3650)] = 730


class QueryResult(StrictModel):
    """Metrics of one query group, at unity and under the proposal."""

    group_id: Sha256
    split: Literal["train", "validation"]
    request_ids: tuple[str, ...]
    baseline_pairwise_accuracy: Share
    candidate_pairwise_accuracy: Share
    baseline_judged_ndcg: Share
    candidate_judged_ndcg: Share


class Power(StrictModel):
    """What gain the validation groups at hand can show (two-sided 5 %, power 80 %)."""

    groups: int
    detectable_gain: float | None
    groups_for_min_gain: int | None


LackingReason = Literal["unjudged", "conflicting_labels", "only_relevant", "only_not_relevant"]


class RequestToLabel(StrictModel):
    """A request that gives no pair yet, and what it lacks."""

    request_id: str
    group_id: Sha256
    split: Literal["train", "validation"]
    reason: LackingReason


class LabelPlan(StrictModel):
    """What to label next: query groups lacking on each side, and requests that would add some."""

    training_queries_lacking: int
    validation_queries_lacking: int
    requests: tuple[RequestToLabel, ...]


EvaluationDecision = Literal["insufficient_data", "no_improvement", "improved_on_observed_candidates"]


class EvaluationSummary(StrictModel):
    """An offline evaluation without what grows with the data."""

    schema_version: Literal[1] = 1
    algorithm: Literal["pairwise_weight_multipliers_v1"] = ALGORITHM
    implementation_version: int = IMPLEMENTATION_VERSION
    user_id: Identity
    scopes: tuple[str, ...] | None
    surface: Surface
    scorer_contract: str
    config: LearningConfig
    input_checksum: Sha256
    manifest_sha256: Sha256
    multipliers: RankingMultipliers
    decision: EvaluationDecision
    training_loss_before: float | None = None
    training_loss_after: float | None = None
    validation_ndcg_gain: float | None = None
    validation_pairwise_gain: float | None = None
    validation_gain_interval: Interval | None = None
    resampling: Resampling
    graded_requests: int
    validation_groups_sha256: Sha256
    earlier_evaluations_on_these_groups: int
    power: Power
    label_plan: LabelPlan
    coverage: dict[str, int]
    exclusions: dict[str, int]
    limitations: tuple[str, ...] = (
        "Candidates, features, reranked prefix and session lineage are those observed; nothing is retrieved"
        " again.",
        "Only explicitly judged candidates enter; a missing label is not a negative.",
        "Repeated queries are one group; paraphrases are one only where a caller names their group.",
        "An improvement here is not enough to activate a profile.",
    )


class EvaluationReport(EvaluationSummary):
    """Result of an offline evaluation; it changes nothing."""

    feedback_ids: tuple[str, ...]
    receipt_checksums: dict[str, Sha256]
    queries: tuple[QueryResult, ...] = ()


class EvaluationEvidence(BaseModel):
    """What a holdout must not share with the evaluation that it confirms, out of PRME's report or ours."""

    class Query(BaseModel):
        group_id: Sha256

    receipt_checksums: dict[str, Sha256]
    queries: tuple[Query, ...]


class HoldoutTrial(StrictModel):
    """One query answered under both arms, with everything that is relevant to it.

    `relevant_node_ids` are documents' identities where rows are parts of documents; `grades` makes NDCG
    graded; `slices` name the protected slices that the query belongs to.
    """

    group_id: Name
    baseline_request_id: Identity
    candidate_request_id: Identity
    relevant_node_ids: Annotated[tuple[Identity, ...], Field(min_length=1, max_length=10_000)]
    grades: dict[Identity, Annotated[int, Field(ge=1, le=4)]] | None = None
    slices: tuple[Name, ...] = ()

    @model_validator(mode="after")
    def _identities_are_sound(self) -> Self:
        if self.baseline_request_id == self.candidate_request_id:
            raise ValueError("a trial needs two requests")
        if len(set(self.relevant_node_ids)) != len(self.relevant_node_ids):
            raise ValueError("relevant_node_ids repeats an id")
        if self.grades is not None and self.grades.keys() != set(self.relevant_node_ids):
            raise ValueError("grades are of all relevant nodes or left out")
        return self

    @property
    def gains(self) -> dict[str, float]:
        """NDCG gain of each relevant document: 1, or 2^grade − 1."""
        if self.grades is None:
            return dict.fromkeys(self.relevant_node_ids, 1.0)
        return {node_id: math.ldexp(1.0, grade) - 1.0 for node_id, grade in self.grades.items()}


class HoldoutQueryResult(StrictModel):
    """Metrics of one query group under both arms."""

    group_id: Name
    baseline_request_ids: tuple[str, ...]
    candidate_request_ids: tuple[str, ...]
    baseline_recall: Share
    candidate_recall: Share
    baseline_ndcg: Share
    candidate_ndcg: Share
    baseline_mrr: Share
    candidate_mrr: Share


class SliceResult(StrictModel):
    """A protected slice: mean NDCG gain over its query groups (None: it has none) against its bound."""

    name: Name
    query_groups: int
    ndcg_gain: float | None
    bound: float
    holds: bool


HoldoutDecision = Literal["insufficient_data", "no_improvement", "improved_full_retrieval"]
FailedGate = Literal[
    "query_groups",
    "ndcg_gain",
    "ndcg_gain_interval",
    "recall",
    "regression_fraction",
    "protected_slice_unmeasured",
    "protected_slice",
]


class HoldoutSummary(StrictModel):
    """A full-retrieval holdout without what grows with the data."""

    schema_version: Literal[1] = 1
    algorithm: Literal["paired_full_retrieval_v1"] = "paired_full_retrieval_v1"
    implementation_version: int = IMPLEMENTATION_VERSION
    user_id: Identity
    scopes: tuple[str, ...] | None
    surface: Literal["results"] = "results"
    config: HoldoutConfig
    proposal_input_checksum: Sha256
    memory_artifact_sha256: Sha256
    input_checksum: Sha256
    manifest_sha256: Sha256
    feature_identity: dict[str, Any]
    feature_identity_sha256: Sha256
    base_scoring: dict[str, Any]
    baseline_multipliers: RankingMultipliers
    candidate_multipliers: RankingMultipliers
    decision: HoldoutDecision
    failed_gates: tuple[FailedGate, ...]
    exploratory: bool
    baseline_recall: float
    candidate_recall: float
    recall_gain: float
    baseline_ndcg: float
    candidate_ndcg: float
    ndcg_gain: float
    ndcg_gain_interval: Interval | None
    baseline_mrr: float
    candidate_mrr: float
    mrr_gain: float
    regression_fraction: float
    resampling: Resampling
    graded_trials: int
    power: Power
    slices: tuple[SliceResult, ...]
    coverage: dict[str, int]
    limitations: tuple[str, ...] = (
        "What is relevant is supplied with the trials and not inferred from what was shown.",
        "Pair checks bind both arms to one request; that no write came between them is shown by the digest"
        " of the memory, which for imported pairs is the caller's word.",
        "A positive holdout speaks of retrieval under these features, not of the quality of answers.",
    )


class HoldoutReport(HoldoutSummary):
    """Result of a full-retrieval holdout; it changes nothing."""

    receipt_checksums: dict[str, Sha256]
    trials: tuple[HoldoutTrial, ...]
    queries: tuple[HoldoutQueryResult, ...]
