"""PRME receipts as columns.

Receipts are added one by one and forgotten; what stays is some 100 bytes a candidate, however large the file.
"""

from collections.abc import Sequence

import numpy as np

from apps.learning.receipt_set import Formula, ReceiptSet
from apps.learning.scorer import FloatArray, IndexArray, WeightedScorer
from apps.retrieval.identity import normalise_query
from apps.retrieval.prme.documents import Adjustment, Candidate, ScoreProvenance
from apps.retrieval.prme.reading import PrmeReceipt
from apps.retrieval.steps import AffineStep, CapStep, RoundStep, Step

# PRME compares neither installations nor versions of its scorer before it fits.
PRME_CONTRACT = "prme"
# Columns of a candidate's row.
_FEATURES = slice(0, 6)
_EPISTEMIC, _BONUS, _NODE_TYPE, _CAP, _GROUP, _PATH, _RECORDED, _WIDTH = 6, 7, 8, 9, 10, 11, 12, 13

Chain = tuple[tuple[float, float], ...]


class PrmeReceiptColumns:
    """Collects receipts in any order; `build` gives them as a ReceiptSet in the order of request ids."""

    def __init__(self) -> None:
        self._facts: dict[str, tuple[str, str, tuple[str, ...] | None, Formula]] = {}
        self._rows: dict[str, FloatArray] = {}
        self._weight_rows: dict[str, list[int]] = {}
        self._chains: dict[str, list[Chain]] = {}
        self._ids: dict[str, list[str]] = {}
        self._weights: dict[tuple[float, ...], int] = {}

    def add(self, receipt: PrmeReceipt) -> None:
        """Take what fitting needs from a verified receipt of a request not yet added."""
        document = receipt.document
        request_id, formula = document.request_id, document.formula
        identity = normalise_query(document.query)
        self._facts[request_id] = (receipt.checksum, identity, document.scope_key, formula)
        fitted = document.candidates if formula == "weighted" else ()
        provenances = [(document.score_provenance or {})[candidate.node_id] for candidate in fitted]
        rows = [
            _row(candidate, provenance, document.ranking_policy)
            for candidate, provenance in zip(fitted, provenances, strict=True)
        ]
        self._rows[request_id] = np.array(rows, dtype=np.float64).reshape(-1, _WIDTH)
        self._weight_rows[request_id] = [self._weight_row(p.weights.additive) for p in provenances]
        self._chains[request_id] = [tuple(map(_affine, p.adjustments)) for p in provenances]
        self._ids[request_id] = [candidate.node_id for candidate in fitted]

    def build(self) -> ReceiptSet:
        """All receipts added, as columns."""
        request_ids = sorted(self._facts)
        facts = [self._facts[request_id] for request_id in request_ids]
        rows = np.concatenate([np.empty((0, _WIDTH)), *(self._rows[r] for r in request_ids)])
        sizes = [len(self._ids[request_id]) for request_id in request_ids]
        ranks = [rank for request_id in request_ids for rank in _ranks(self._ids[request_id])]
        return ReceiptSet(
            request_ids=tuple(request_ids),
            checksums=tuple(fact[0] for fact in facts),
            query_identities=tuple(fact[1] for fact in facts),
            scopes=tuple(fact[2] for fact in facts),
            formulas=tuple(fact[3] for fact in facts),
            contracts=(PRME_CONTRACT,) * len(facts),
            offsets=np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64),
            recorded=rows[:, _RECORDED].copy(),
            tie_group=rows[:, _GROUP].astype(np.int8),
            tie_path=rows[:, _PATH].copy(),
            id_rank=np.array(ranks, dtype=np.int32),
            scorer=self._scorer(rows, request_ids),
        )

    def _weight_row(self, weights: tuple[float, ...]) -> int:
        return self._weights.setdefault(weights, len(self._weights))

    def _scorer(self, rows: FloatArray, request_ids: Sequence[str]) -> WeightedScorer:
        weight_rows = [row for request_id in request_ids for row in self._weight_rows[request_id]]
        chains = [chain for request_id in request_ids for chain in self._chains[request_id]]
        return _weighted_scorer(rows, np.array(weight_rows, dtype=np.int64), list(self._weights), chains)


def _row(candidate: Candidate, provenance: ScoreProvenance, policy: str | None) -> list[float]:
    trace, weights = provenance.trace, provenance.weights
    relevance = trace.semantic_similarity + trace.lexical_relevance
    capped = weights.relevance_floor > 0 and relevance < weights.relevance_floor
    by_id = policy == "score_id" or (policy == "reranked_prefix" and candidate.reranker_score is not None)
    return [
        trace.semantic_similarity,
        trace.lexical_relevance,
        trace.graph_proximity,
        trace.recency_factor,
        trace.salience,
        trace.confidence,
        trace.epistemic_weight,
        weights.temporal_boost * trace.temporal_affinity if weights.temporal_boost > 0 else 0.0,
        trace.node_type_boost,
        relevance if capped else np.inf,
        1.0 if policy == "reranked_prefix" and candidate.reranker_score is None else 0.0,
        0.0 if by_id else candidate.path_score,
        candidate.score,
    ]


def _affine(adjustment: Adjustment) -> tuple[float, float]:
    """Scale and shift of one adjustment: `score * scale + shift`, equal to the scalar operation."""
    coefficient = adjustment.coefficient
    if adjustment.kind == "neural_blend":
        return coefficient, (1 - coefficient) * (adjustment.neural_score or 0.0)
    if adjustment.kind == "neural_rank_assignment":
        return 0.0, coefficient
    return coefficient, 0.0


def _weighted_scorer(
    rows: FloatArray, weight_row: IndexArray, weights: Sequence[tuple[float, ...]], chains: Sequence[Chain]
) -> WeightedScorer:
    ones, zeros, num = np.ones(len(rows)), np.zeros(len(rows)), len(rows)
    steps: list[Step | None] = [
        AffineStep.of(rows[:, _EPISTEMIC], zeros),
        AffineStep.of(ones, rows[:, _BONUS]),
        AffineStep.of(rows[:, _NODE_TYPE], zeros),
        CapStep.of(rows[:, _CAP].copy()),
        RoundStep(None),
    ]
    for level in range(max(map(len, chains), default=0)):
        scale, shift = np.ones(num), np.zeros(num)
        for index, chain in enumerate(chains):
            if level < len(chain):
                scale[index], shift[index] = chain[level]
        steps.append(AffineStep.of(scale, shift))
    return WeightedScorer(
        features=np.ascontiguousarray(rows[:, _FEATURES].T),
        weights=np.array(weights, dtype=np.float64).reshape(-1, 6),
        weight_row=weight_row,
        steps=tuple(step for step in steps if step is not None),
    )


def _ranks(ids: Sequence[str]) -> list[int]:
    position = {node_id: rank for rank, node_id in enumerate(sorted(ids))}
    return [position[node_id] for node_id in ids]
