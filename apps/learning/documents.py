"""Answers of learning's routes, for the schema of the API."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from apps.learning.schemas import (
    EvaluationReport,
    EvaluationSummary,
    FailedGate,
    HoldoutConfig,
    HoldoutReport,
    HoldoutSummary,
    LearningConfig,
)

Status = Literal["queued", "running", "succeeded", "failed", "cancelled"]
Six = Annotated[
    list[float], Field(description="semantic, lexical, graph, recency, salience, confidence", min_length=6)
]


class RunProgress(BaseModel):
    phase: str | None
    done: int
    total: int | None = Field(description="Null where steps are not counted.")


class RunShown(BaseModel):
    """What evaluations and holdouts show alike."""

    requested_at: str
    status: Status
    progress: RunProgress
    cancel_requested: bool
    started_at: str | None
    finished_at: str | None
    failure_code: str | None
    scopes: list[str] | None
    gate_policy_id: str
    exploratory: bool = Field(description="It can be looked at, and never promotes a profile.")
    weaker_settings: list[str] = Field(description="What asks for less than the gate policy.")


class EvaluationHead(RunShown):
    evaluation_id: str
    surface: Literal["results", "context"]
    source: Literal["native", "imported"]
    config: LearningConfig


class EvaluationShown(EvaluationHead):
    report: EvaluationReport | EvaluationSummary | None
    report_sha256: str | None = Field(description="Of the whole report as canonical JSON.")
    receipts_gone: int | None = Field(
        description="Receipts that it stands on and that are erased or past their term: above 0 it no longer "
        "reproduces, and carries no profile. Null without a report."
    )


class EvaluationFigures(BaseModel):
    decision: str
    training_groups: int
    validation_groups: int
    ndcg_gain: float | None
    interval_low: float | None
    interval_high: float | None
    pairwise_gain: float | None
    multipliers: Six
    manifest_sha256: str
    checksum: str


class EvaluationListed(EvaluationHead):
    result: EvaluationFigures | None


class EvaluationPage(BaseModel):
    evaluations: list[EvaluationListed]
    next_cursor: str | None


class EvaluatedQueryShown(BaseModel):
    group_id: str
    split: Literal["train", "validation"]
    receipt_ids: list[str]
    baseline_pairwise_accuracy: float
    candidate_pairwise_accuracy: float
    baseline_judged_ndcg: float
    candidate_judged_ndcg: float


class EvaluatedQueryPage(BaseModel):
    queries: list[EvaluatedQueryShown]
    next_cursor: str | None


class HoldoutHead(RunShown):
    holdout_id: str
    evaluation_id: str
    query_set_id: str | None = Field(description="Null for imported pairs.")
    config: HoldoutConfig
    limit: int
    baseline_multipliers: Six
    candidate_multipliers: Six


class HoldoutShown(HoldoutHead):
    report: HoldoutReport | HoldoutSummary | None
    report_sha256: str | None = Field(description="Of the whole report as canonical JSON.")


class HoldoutFigures(BaseModel):
    decision: str
    failed_gates: list[FailedGate]
    query_groups: int
    baseline_ndcg: float
    candidate_ndcg: float
    ndcg_gain: float
    interval_low: float | None
    interval_high: float | None
    recall_gain: float
    mrr_gain: float
    regression_fraction: float
    manifest_sha256: str
    checksum: str


class HoldoutListed(HoldoutHead):
    result: HoldoutFigures | None


class HoldoutPage(BaseModel):
    holdouts: list[HoldoutListed]
    next_cursor: str | None


class HoldoutPairShown(BaseModel):
    query: str | None = Field(description="Id of the query in its set.")
    group_id: str
    slices: list[str]
    baseline_receipt_id: str
    candidate_receipt_id: str
    baseline_recall: float
    candidate_recall: float
    baseline_ndcg: float
    candidate_ndcg: float
    baseline_mrr: float
    candidate_mrr: float


class HoldoutPairPage(BaseModel):
    queries: list[HoldoutPairShown]
    next_cursor: str | None


class QuerySetListed(BaseModel):
    query_set_id: str
    name: str
    source: Literal["api", "files", "control_set"]
    created_at: str
    queries_total: int
    judgments_total: int
    content_sha256: str = Field(description="Of queries and judgments in their canonical order.")


class QuerySetPage(BaseModel):
    query_sets: list[QuerySetListed]
    next_cursor: str | None


class SetJudgmentShown(BaseModel):
    repo: str
    identity: int | str
    grade: int


class SetQueryShown(BaseModel):
    id: str
    text: str
    group: str | None
    slice: str | None
    judgments: list[SetJudgmentShown]


class QuerySetShown(QuerySetListed):
    queries: list[SetQueryShown]
    next_cursor: str | None
