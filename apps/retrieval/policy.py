"""The scoring policy: formula, weights and constants, as stored and versioned documents of kind `scoring`."""

from dataclasses import dataclass
from typing import Literal, cast
from uuid import UUID

from pydantic import Field

from apps.core import canonical, policies
from apps.core.schemas import StrictModel
from apps.retrieval.schemas import PolicyReference

FEATURES = ("semantic", "lexical", "graph", "recency", "salience", "confidence")
CHANNELS = ("lexical", "semantic", "graph", "pinned")
KIND = "scoring"

SCORER_CONTRACT = "native-2"
"""Bumped by hand when the same memory may get another score or order.

native-2: the graph and the pinned channel, the steps of a reranker. What native-1 knew scores as it did.
"""
CONTRACTS = ("native-1", SCORER_CONTRACT)
"""Contracts whose receipts the scorer of this version replays."""


class FeatureWeights(StrictModel):
    """Weights of the six features; they need not sum to 1, but do by default."""

    semantic: float = Field(0.36, ge=0, le=1)
    lexical: float = Field(0.36, ge=0, le=1)
    graph: float = Field(0.08, ge=0, le=1)
    recency: float = Field(0.06, ge=0, le=1)
    salience: float = Field(0.07, ge=0, le=1)
    confidence: float = Field(0.07, ge=0, le=1)

    def vector(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in FEATURES}


class EpistemicFactors(StrictModel):
    """What a statement's standing multiplies its score by."""

    observed: float = Field(1.0, ge=0, le=1)
    asserted: float = Field(0.9, ge=0, le=1)
    inferred: float = Field(0.7, ge=0, le=1)
    conditional: float = Field(0.5, ge=0, le=1)
    unverified: float = Field(0.5, ge=0, le=1)
    hypothetical: float = Field(0.3, ge=0, le=1)
    deprecated: float = Field(0.1, ge=0, le=1)


class KindFactors(StrictModel):
    episodic: float = Field(1.0, ge=0, le=2)
    structural: float = Field(1.0, ge=0, le=2)
    passage: float = Field(1.0, ge=0, le=2)


class SessionInheritance(StrictModel):
    """Neighbours of the best rows of a conversation enter or rise to a share of their score."""

    enabled: bool = True
    documents: bool = Field(False, description="Whether the parts of one document do the same.")
    top: int = Field(20, ge=0, le=50, description="Rows from whose places neighbours inherit.")
    distance: int = Field(2, ge=0, le=10, description="Positions on each side.")
    decay: float = Field(0.8, gt=0, lt=1, description="Share of the score that a neighbour inherits.")


class Reranking(StrictModel):
    """What an installed reranker may do; without one nothing of it applies."""

    top: int = Field(20, ge=0, le=50, description="Best rows that it reads; 0 turns it off.")
    keep: float = Field(0.5, ge=0, le=1, description="Share of the score that stays; the rest is its own.")


class ScoringPolicy(StrictModel):
    """What a workspace may decide about ranking; the defaults are chosen by `benchmarks/quality.py`."""

    formula: Literal["weighted", "rank_fusion"] = "weighted"
    weights: FeatureWeights = FeatureWeights()
    fusion_k: int = Field(60, ge=1, le=1000)
    candidates_per_channel: int = Field(100, ge=10, le=500)
    recency_per_day: float = Field(0.02, ge=0, le=1, description="λ of exp(−λ·days).")
    epistemic: EpistemicFactors = EpistemicFactors()
    kinds: KindFactors = KindFactors()
    query_analysis: str | None = Field(
        None, max_length=64, description="Registered analysis of the query's wording; null: none is asked."
    )
    temporal_bonus: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Added to rows of the time that the analysis found the query to speak of.",
    )
    relevance_floor: float = Field(
        0.0, ge=0, le=2, description="Under it, semantic + lexical bound the score."
    )
    current_update: float = Field(
        1.0, ge=1, le=2, description="Factor of latest editions where the analysis found present wording."
    )
    session: SessionInheritance = SessionInheritance()
    rerank: Reranking = Reranking()


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """A policy and the stored version that it is."""

    document: ScoringPolicy
    reference: PolicyReference


def reference(
    document: ScoringPolicy, *, id: UUID | None = None, version: int = 0, sha256: str = ""
) -> PolicyReference:
    """How a receipt names a policy; one that is not stored by the hash that it would have."""
    return PolicyReference(
        id=id,
        sha256=sha256 or canonical.checksum({"kind": KIND, "document": document.model_dump()}),
        version=version,
        formula=document.formula,
        fusion_k=document.fusion_k,
    )


def unstored(document: ScoringPolicy) -> PolicyInForce:
    """A policy that nobody published, for benchmarks and trials."""
    return PolicyInForce(document, reference(document))


def in_force(workspace_id: UUID) -> PolicyInForce:
    """The stored policy that rules the workspace now; in any session, one indexed read."""
    return _of(policies.version_in_effect(workspace_id, KIND))


def ruling_of(policy_id: UUID) -> PolicyInForce:
    """The stored policy of that id."""
    return _of(policies.version_of(policy_id))


def _of(found: policies.Version) -> PolicyInForce:
    document = cast(ScoringPolicy, found.document)
    return PolicyInForce(document, reference(document, id=found.id, version=found.version, sha256=found.hash))


def scoring_kind() -> policies.Kind:
    """What the registry of policies is told at start-up."""
    return policies.Kind(
        name=KIND,
        model=ScoringPolicy,
        default=ScoringPolicy(),
        permission="manage_profiles",
        title="Scoring",
    )
