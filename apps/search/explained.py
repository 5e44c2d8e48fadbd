"""Query and answer of `GET /v1/search/explain`, as the schema of the API shows them."""

from typing import Literal

from pydantic import BaseModel, Field

from apps.core.schemas import Handle, StrictModel


class ExplainQuery(StrictModel):
    receipt_id: Handle
    node_id: Handle


class FactorShown(BaseModel):
    name: str = Field(description="A feature, or a channel under rank fusion.")
    value: float | None = Field(description="Of the feature; the rank in the channel.")
    base: float
    multiplier: float
    applied: float
    contribution: float


class StepShown(BaseModel):
    kind: str
    coefficient: float
    score: float = Field(description="With all steps up to this one, rounded.")
    source: str | None = Field(None, description="The node that an inherited score is of.")


class ArithmeticShown(BaseModel):
    rank: int
    score: float
    formula: Literal["weighted", "rank_fusion"]
    contract: str
    channels: int = Field(description="That returned the row; decides between equal scores.")
    factors: list[FactorShown]
    formula_score: float = Field(description="The sum of the contributions, rounded.")
    adjustments: list[StepShown]
    raw: dict[str, float]


class ChannelStandingShown(BaseModel):
    name: Literal["lexical", "semantic", "graph", "pinned"]
    status: Literal["below_cut", "no_match", "failed"]
    value: float | None = None
    cut: float | None = Field(None, description="The least that got in.")


class Explanation(BaseModel):
    """`arithmetic` where the node was returned; else `reason`, asked of the memory as it is now."""

    receipt_id: str
    node_id: str
    returned: bool
    asked_of: Literal["receipt", "memory_now"]
    arithmetic: ArithmeticShown | None = None
    as_of: str | None = None
    reason: (
        Literal[
            "absent",
            "not_visible",
            "filtered",
            "below_cut",
            "not_found",
            "folded",
            "returned",
            "query_erased",
        ]
        | None
    ) = None
    codes: list[str] | None = Field(None, description="Filters and rules that keep it out.")
    channels: list[ChannelStandingShown] | None = None
    rank: int | None = None
    score: float | None = None
    cut: float | None = Field(None, description="The score of the last row.")
    under: str | None = Field(None, description="The row that it is folded under.")
    same_policy: bool | None = Field(None, description="Whether the scoring policy is still the receipt's.")
