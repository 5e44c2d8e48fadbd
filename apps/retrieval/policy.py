"""The scoring policy: formula, weights and constants, as stored and versioned documents of kind `scoring`."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from apps.core import canonical
from apps.retrieval.schemas import PolicyReference

FEATURES = ("semantic", "lexical", "graph", "recency", "salience", "confidence")
CHANNELS = ("lexical", "semantic")
KIND = "scoring"

SCORER_CONTRACT = "native-1"
"""Bumped by hand when the same inputs may get another score or order."""

Share = float


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class FeatureWeights(_Strict):
    """Weights of the six features; they need not sum to 1, but do by default."""

    semantic: float = Field(0.36, ge=0, le=1)
    lexical: float = Field(0.36, ge=0, le=1)
    graph: float = Field(0.08, ge=0, le=1)
    recency: float = Field(0.06, ge=0, le=1)
    salience: float = Field(0.07, ge=0, le=1)
    confidence: float = Field(0.07, ge=0, le=1)

    def vector(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in FEATURES}


class EpistemicFactors(_Strict):
    """What a statement's standing multiplies its score by."""

    observed: float = Field(1.0, ge=0, le=1)
    asserted: float = Field(0.9, ge=0, le=1)
    inferred: float = Field(0.7, ge=0, le=1)
    conditional: float = Field(0.5, ge=0, le=1)
    unverified: float = Field(0.5, ge=0, le=1)
    hypothetical: float = Field(0.3, ge=0, le=1)
    deprecated: float = Field(0.1, ge=0, le=1)


class KindFactors(_Strict):
    episodic: float = Field(1.0, ge=0, le=2)
    structural: float = Field(1.0, ge=0, le=2)
    passage: float = Field(1.0, ge=0, le=2)


class SessionInheritance(_Strict):
    """Neighbours of the best rows of a conversation enter or rise to a share of their score."""

    enabled: bool = True
    top: int = Field(20, ge=0, le=50, description="Rows from whose places neighbours inherit.")
    distance: int = Field(2, ge=0, le=10, description="Positions on each side.")
    decay: float = Field(0.8, gt=0, lt=1, description="Share of the score that a neighbour inherits.")


class ScoringPolicy(_Strict):
    """What a workspace may decide about ranking; the defaults are chosen by `benchmarks/quality.py`."""

    formula: Literal["weighted", "rank_fusion"] = "weighted"
    weights: FeatureWeights = FeatureWeights()
    fusion_k: int = Field(60, ge=1, le=1000)
    candidates_per_channel: int = Field(100, ge=10, le=500)
    recency_per_day: float = Field(0.02, ge=0, le=1, description="λ of exp(−λ·days).")
    epistemic: EpistemicFactors = EpistemicFactors()
    kinds: KindFactors = KindFactors()
    relevance_floor: float = Field(0.0, ge=0, le=2)
    session: SessionInheritance = SessionInheritance()


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """A policy and the stored version that it is."""

    document: ScoringPolicy
    reference: PolicyReference


def reference(
    document: ScoringPolicy, *, id: UUID | None = None, version: int = 0, sha256: str = ""
) -> PolicyReference:
    """How a receipt names a policy; without a stored one, by the hash of kind and document."""
    return PolicyReference(
        id=id,
        sha256=sha256 or canonical.checksum({"kind": KIND, "document": document.model_dump()}),
        version=version,
        formula=document.formula,
    )


@lru_cache(maxsize=1)
def default() -> PolicyInForce:
    """The policy of a workspace that has published none, as the code ships it."""
    document = ScoringPolicy()
    return PolicyInForce(document, reference(document))
