"""Exact replay of a PRME receipt: scores and order from the receipt alone.

No model, clock, graph or query analysis takes part. Replay speaks of the returned candidates only: what
generation, filters or limits left out is not in a receipt. Equality is that of doubles; rounding is
CPython's (the correctly rounded decimal), and sums run left to right.
"""

from dataclasses import dataclass

from apps.retrieval.prme.documents import (
    Adjustment,
    Candidate,
    RankFusion,
    ReceiptDocument,
    ScoreProvenance,
    ScoreTrace,
    ScoringWeights,
)
from apps.retrieval.prme.exceptions import InvalidReceipt, ReplayMismatch, ReplayUnavailable

DECIMALS = 10
# What a tie break takes at most: below the step of a score rounded to ten decimals, so that it orders
# equal scores only.
TIE_BREAK_SCALE = 1e-11


@dataclass(frozen=True, slots=True)
class Replay:
    """Recomputed scores by node id, and node ids in recomputed order."""

    scores: dict[str, float]
    order: tuple[str, ...]


def weighted_score(trace: ScoreTrace, weights: ScoringWeights) -> float:
    """Formula 1: weighted features, factors, temporal bonus and relevance cap."""
    additive = (
        weights.w_semantic * trace.semantic_similarity
        + weights.w_lexical * trace.lexical_relevance
        + weights.w_graph * trace.graph_proximity
        + weights.w_recency * trace.recency_factor
        + weights.w_salience * trace.salience
        + weights.w_confidence * trace.confidence
    )
    score = additive * trace.epistemic_weight
    if weights.temporal_boost > 0:
        score += weights.temporal_boost * trace.temporal_affinity
    score *= trace.node_type_boost
    relevance = trace.semantic_similarity + trace.lexical_relevance
    if weights.relevance_floor > 0 and relevance < weights.relevance_floor:
        score = min(score, relevance)
    return round(score, DECIMALS)


def fused_score(fusion: RankFusion, k: int) -> float:
    """Formula 2: reciprocal ranks, scaled so that first on both channels is 1, and pool-relative factors."""
    ranks = (rank for rank in (fusion.semantic_rank, fusion.lexical_rank) if rank is not None)
    fused = sum(1 / (k + rank) for rank in ranks) * (k + 1) / 2
    value = fused * fusion.epistemic_factor * fusion.node_type_factor * fusion.temporal_factor
    if fusion.recency_boost_factor is not None:
        value *= fusion.recency_boost_factor
    score = round(value, DECIMALS)
    if fusion.tie_break is not None and score > 0:
        score -= fusion.tie_break * TIE_BREAK_SCALE
    return score


def base_score(provenance: ScoreProvenance) -> float:
    """The score before adjustments, by the formula that the provenance names."""
    if provenance.rank_fusion is not None and provenance.weights.rrf_k is not None:
        return fused_score(provenance.rank_fusion, provenance.weights.rrf_k)
    return weighted_score(provenance.trace, provenance.weights)


def adjusted(score: float, adjustment: Adjustment) -> float:
    """The score after one adjustment; not rounded."""
    coefficient = adjustment.coefficient
    if adjustment.kind == "neural_blend":
        return (1 - coefficient) * (adjustment.neural_score or 0.0) + coefficient * score
    if adjustment.kind == "neural_rank_assignment":
        return coefficient
    return score * coefficient


def final_score(provenance: ScoreProvenance) -> float:
    """The score as returned: formula, then the adjustments in their order."""
    score = base_score(provenance)
    for adjustment in provenance.adjustments:
        score = adjusted(score, adjustment)
    return score


def sort_key(candidate: Candidate, score: float, policy: str | None) -> tuple[int, float, float, str]:
    """Position of a candidate under a ranking policy: smaller comes first."""
    by_path = (-score, -candidate.path_score, candidate.node_id)
    by_id = (-score, 0.0, candidate.node_id)
    if policy == "score_id":
        return (0, *by_id)
    if policy == "reranked_prefix":
        return (0, *by_id) if candidate.reranker_score is not None else (1, *by_path)
    return (0, *by_path)


def replay(receipt: ReceiptDocument) -> Replay:
    """Recompute every score and the order. Raises ReplayUnavailable for version 1."""
    if receipt.schema_version == 1 or receipt.score_provenance is None:
        raise ReplayUnavailable("version 1 holds no score provenance", pointer="/schema_version")
    scores = {node_id: final_score(p) for node_id, p in receipt.score_provenance.items()}
    ordered = sorted(receipt.candidates, key=lambda c: sort_key(c, scores[c.node_id], receipt.ranking_policy))
    return Replay(scores=scores, order=tuple(c.node_id for c in ordered))


def check_candidates(receipt: ReceiptDocument) -> None:
    """Refuse duplicates and provenance of other nodes than those returned. Raises InvalidReceipt."""
    ids = [candidate.node_id for candidate in receipt.candidates]
    if len(set(ids)) != len(ids):
        raise InvalidReceipt("a candidate occurs twice", pointer="/candidates")
    if receipt.score_provenance is None:
        return
    if receipt.score_provenance.keys() != set(ids):
        raise InvalidReceipt("provenance covers other nodes than the candidates", pointer="/score_provenance")
    for index, candidate in enumerate(receipt.candidates):
        provenance = receipt.score_provenance[candidate.node_id]
        pointer = f"/candidates/{index}"
        if candidate.trace is not None and (
            candidate.trace != provenance.trace or provenance.base_node_id != candidate.node_id
        ):
            raise InvalidReceipt("the trace is not the one scored", pointer=f"{pointer}/trace")
        cosine = max(0.0, provenance.trace.semantic_similarity)
        if candidate.semantic_relevance is not None and candidate.semantic_relevance < cosine:
            raise InvalidReceipt("below the recorded cosine", pointer=f"{pointer}/semantic_relevance")


def verify_replay(receipt: ReceiptDocument) -> None:
    """Refuse a receipt whose recorded scores or order are not those recomputed, to the last bit.

    Raises ReplayMismatch, or ReplayUnavailable for version 1.
    """
    recomputed = replay(receipt)
    for node_id, provenance in (receipt.score_provenance or {}).items():
        if base_score(provenance) != provenance.trace.composite_score:
            raise ReplayMismatch(
                "the base score is not reproduced",
                pointer=f"/score_provenance/{node_id}/trace/composite_score",
            )
    for index, candidate in enumerate(receipt.candidates):
        if recomputed.scores[candidate.node_id] != candidate.score:
            raise ReplayMismatch("the score is not reproduced", pointer=f"/candidates/{index}/score")
    if recomputed.order != tuple(candidate.node_id for candidate in receipt.candidates):
        raise ReplayMismatch("the order is not reproduced", pointer="/candidates")
