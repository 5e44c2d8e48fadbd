"""Bodies and queries of the calls about outcomes, judgments and citations."""

from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, Field, StrictBool, model_validator
from pydantic_core import PydanticCustomError

from apps.core.schemas import AwareTime, Handle, StrictModel, Text
from apps.feedback.models.citations import LONGEST_ANSWER_ID, MAX_CITED
from apps.feedback.models.judgments import MAX_GRADE, MAX_JUDGED

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


NodeId = Annotated[str, Field(pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")]
"""As the receipt writes it, so that one node has one name in a body."""
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
SurfaceName = Literal["results", "context"]
MethodName = Literal["explicit_user", "structured_evaluation"]


def _unique(values: list[str]) -> list[str]:
    if len(set(values)) != len(values):
        raise PydanticCustomError("not_unique", "A node is named twice")
    return values


class JudgmentRequest(StrictModel):
    """`POST /v1/receipts/{id}/judgments`: labels, or the withdrawal of labels.

    labels       node id → relevant or not; strictly booleans
    grade        node id → 0..4, beside a label of the same node
    supersedes   feedback id of a record whose labels are replaced, for the nodes that are named here
    withdraws    feedback id of a record whose labels are taken back, all or those of `node_ids`
    """

    feedback_id: UUID
    labels: Annotated[dict[NodeId, StrictBool], Field(min_length=1, max_length=MAX_JUDGED)] | None = None
    surface: SurfaceName | None = None
    method: MethodName | None = None
    grade: dict[NodeId, Annotated[int, Field(ge=0, le=MAX_GRADE)]] | None = None
    supersedes: UUID | None = None
    withdraws: UUID | None = None
    node_ids: (
        Annotated[list[NodeId], Field(min_length=1, max_length=MAX_JUDGED), AfterValidator(_unique)] | None
    ) = None
    reason: Reason | None = None

    @model_validator(mode="after")
    def _labels_or_withdrawal(self) -> Self:
        if self.withdraws is not None:
            if self.labels is not None or self.grade is not None or self.supersedes is not None:
                raise PydanticCustomError("withdrawal", "A withdrawal has no labels")
            return self
        if self.labels is None:
            raise PydanticCustomError("no_labels", "Labels are needed, or what is withdrawn")
        if self.surface is None or self.method is None:
            raise PydanticCustomError("no_surface", "Labels have a surface and a method")
        if self.node_ids is not None:
            raise PydanticCustomError("node_ids", "Labels name their nodes themselves")
        if self.grade is not None and not self.grade.keys() <= self.labels.keys():
            raise PydanticCustomError("grade", "A grade stands beside a label of the same node")
        return self


class JudgmentsQuery(StrictModel):
    """`GET /v1/judgments` and `GET /v1/receipts/{id}/judgments`."""

    limit: Annotated[int, Field(ge=1, le=50)] = 10
    cursor: Handle | None = None
    receipt: UUID | None = None
    node: UUID | None = None
    surface: SurfaceName | None = None
    method: MethodName | None = None
    annotator: Annotated[Text, Field(min_length=1, max_length=150)] | None = None


class CitationsRequest(StrictModel):
    """`POST /v1/receipts/{id}/citations`. No cited node at all says that the answer cited none."""

    citation_id: UUID
    answer_id: Annotated[Text, Field(min_length=1, max_length=LONGEST_ANSWER_ID)]
    answer_sha256: Sha256 | None
    method: Literal["model_reported", "application_verified", "human_verified"]
    cited_node_ids: Annotated[list[NodeId], Field(max_length=MAX_CITED), AfterValidator(_unique)]


class AblationRequest(StrictModel):
    """`POST /v1/receipts/{id}/ablations`: the entries of the context that are taken out."""

    node_ids: Annotated[list[NodeId], Field(min_length=1, max_length=MAX_JUDGED), AfterValidator(_unique)]


class AssessmentRequest(StrictModel):
    """`POST /v1/ablations/{id}/assessments`. `evaluation_id` is the caller's own, one an assessment."""

    evaluation_id: Handle
    citation_id: UUID
    baseline_correct: StrictBool
    counterfactual_correct: StrictBool
    baseline_answer_sha256: Sha256 | None = None
    counterfactual_answer_sha256: Sha256 | None = None
