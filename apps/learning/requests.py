"""Bodies and queries of learning's routes."""

from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from apps.core.schemas import FilledText, Handle, StrictModel, Text
from apps.core.scopes import ScopeSet
from apps.learning.schemas import (
    HoldoutConfig,
    HoldoutTrial,
    LearningConfig,
    Name,
    RankingMultipliers,
    Sha256,
)
from apps.retrieval.schemas import MAX_LIMIT

MAX_NAMED_REQUESTS = 100_000
MAX_QUERIES = 2_000
MAX_JUDGMENTS = 100_000
MAX_TRIALS = 5_000
MAX_QUERY = 4096
"""Characters of a query, as in a search."""
MAX_REPOSITORY, MAX_IDENTITY = 256, 512


class EvaluationRequest(StrictModel):
    """`POST /v1/learning/evaluations`. Settings that are left out are those of the gate policy."""

    idempotency_key: Handle | None = None
    scopes: ScopeSet | None = Field(None, description="The exact scope set of the searches; null = all.")
    surface: Literal["results", "context"] = "results"
    source: Literal["native", "imported"] = Field(
        "native",
        description="imported: receipts and labels that PRME wrote, evaluated as its own evaluation would; "
        "always exploratory.",
    )
    config: LearningConfig = LearningConfig()
    query_groups: Annotated[dict[UUID, Name], Field(max_length=MAX_NAMED_REQUESTS)] = Field(
        {},
        description="Receipt id (imported: request id) → name of a group of paraphrases, which covers every receipt "
        "of the query.",
    )


def _document_identity(value: int | str) -> int | str:
    if isinstance(value, str) and not 1 <= len(value) <= MAX_IDENTITY:
        raise PydanticCustomError("bad_identity", "An identity has 1 to 512 characters")
    return value


class SetQuery(StrictModel):
    """A query of a set. `group` joins paraphrases, `slice` names what the gate policy may protect."""

    id: Annotated[FilledText, Field(max_length=512)]
    text: Annotated[FilledText, Field(max_length=MAX_QUERY)]
    group: Name | None = None
    slice: Name | None = None


class SetJudgment(StrictModel):
    """How relevant a document is to a query: 0 is not, what is not named is not either."""

    query: Annotated[Text, Field(min_length=1, max_length=512)]
    repo: Annotated[Text, Field(min_length=1, max_length=MAX_REPOSITORY)]
    identity: Annotated[int | Text, AfterValidator(_document_identity)]
    grade: Annotated[int, Field(ge=0, le=4)] = 1


class QuerySetRequest(StrictModel):
    """`POST /v1/learning/query-sets`."""

    idempotency_key: Handle | None = None
    name: Annotated[FilledText, Field(max_length=200)]
    queries: Annotated[list[SetQuery], Field(min_length=1, max_length=MAX_QUERIES)]
    judgments: Annotated[list[SetJudgment], Field(min_length=1, max_length=MAX_JUDGMENTS)]


class HoldoutRequest(StrictModel):
    """`POST /v1/learning/holdouts`: over a query set, which the platform runs, or over pairs that are there."""

    idempotency_key: Handle | None = None
    evaluation_id: UUID
    query_set_id: UUID | None = None
    trials: Annotated[list[HoldoutTrial], Field(min_length=1, max_length=MAX_TRIALS)] | None = Field(
        None, description="Pairs of receipts of yours; always exploratory."
    )
    memory_artifact_sha256: Sha256 | None = Field(None, description="Of imported pairs: what answered them.")
    baseline_multipliers: RankingMultipliers = RankingMultipliers()
    config: HoldoutConfig = HoldoutConfig()
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)] | None = Field(
        None, description="Rows of each retrieval; k by default."
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.query_set_id is None) == (self.trials is None):
            raise PydanticCustomError("one_source", "Name a query set or trials, one of them")
        if self.trials is None and self.memory_artifact_sha256 is not None:
            raise PydanticCustomError("own_memory", "The platform says itself what memory it asked")
        return self


class NoBody(StrictModel):
    """A call that says all by its address; an empty object or nothing."""


class RunsQuery(StrictModel):
    """A listing of evaluations."""

    limit: Annotated[int, Field(ge=1, le=50)] = 10
    cursor: Handle | None = None
    status: Literal["queued", "running", "succeeded", "failed", "cancelled"] | None = None


class HoldoutsQuery(RunsQuery):
    """A listing of holdouts."""

    evaluation: UUID | None = None


class PageQuery(StrictModel):
    """A page of something."""

    limit: Annotated[int, Field(ge=1, le=200)] = 50
    cursor: Handle | None = None


class ShownQuery(StrictModel):
    """`report=full` adds the stored report, byte for byte."""

    report: Literal["summary", "full"] = "summary"
