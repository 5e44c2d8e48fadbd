"""From features to scores, in a fixed order of steps that replay can repeat to the bit."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter
from uuid import UUID

import numpy as np

from apps.core.problems import InvalidRequest
from apps.retrieval.candidates import Candidate
from apps.retrieval.policy import CHANNELS, FEATURES, ScoringPolicy
from apps.retrieval.prme.rounding import round_scores
from apps.retrieval.schemas import Adjustment, Features, Raw, Weights
from apps.retrieval.steps import weighted_sums

DECIMALS = 10
LEAST_MULTIPLIER, GREATEST_MULTIPLIER = 0.25, 4.0
SESSION_DECAY = "session_decay"
RERANK_KEEP, RERANK = "rerank_keep", "rerank"
"""The two steps of a reranked row: what stays of its score, and what the reranker adds."""
_IN_ORDER = attrgetter(*FEATURES)
_ONE_VECTOR = np.zeros(0, dtype=np.int64)
"""Which weights each row has, where all have the same: nothing is looked up."""


# Not frozen: a search makes hundreds, and freezing triples the price of making one.
@dataclass(slots=True)
class Scored:
    """A candidate with its score, never changed once it is made.

    `measured` is the candidate whose channels gave the score. An inherited row has that of `base`, and its features
    and adjustments.
    """

    candidate: Candidate
    measured: Candidate
    features: Features
    adjustments: tuple[Adjustment, ...]
    score: float
    base: UUID | None = None

    @property
    def raw(self) -> Raw:
        """What the channels said; made for the few rows that are asked."""
        return raw_of(self.measured)

    @property
    def path_score(self) -> int:
        return self.candidate.channels

    @property
    def reranked(self) -> bool:
        return bool(self.adjustments) and self.adjustments[-1].kind == RERANK

    def order(self) -> tuple[float, int, int]:
        """Sorts best first: score, then number of channels, then id."""
        return (-self.score, -self.candidate.channels, self.candidate.node.id.int)


def applied_weights(policy: ScoringPolicy, multipliers: Mapping[str, float] | None) -> Weights:
    """Base weights, multipliers and `w·m / Σ w·m` (rank fusion: `w·m`); all ones give the base, bit for bit.

    Raises InvalidRequest for an unknown name, a value that is not finite or outside [0.25, 4].
    """
    names = FEATURES if policy.formula == "weighted" else CHANNELS
    base = policy.weights.vector() if policy.formula == "weighted" else dict.fromkeys(CHANNELS, 1.0)
    full = dict.fromkeys(names, 1.0)
    for name, value in (multipliers or {}).items():
        if name not in full:
            raise InvalidRequest("There is no such factor.", pointer="/ranking_multipliers")
        if not math.isfinite(value) or not LEAST_MULTIPLIER <= value <= GREATEST_MULTIPLIER:
            raise InvalidRequest("A multiplier lies in [0.25, 4].", pointer=f"/ranking_multipliers/{name}")
        full[name] = float(value)
    return Weights(base, full, weighed(base, full, normalised=policy.formula == "weighted"))


def weighed(
    base: Mapping[str, float], multipliers: Mapping[str, float], *, normalised: bool
) -> Mapping[str, float]:
    """`w·m`, normalised to a sum of 1; all ones give the base, bit for bit. Live scoring and replay share it."""
    if all(value == 1.0 for value in multipliers.values()):
        return base
    products = {name: base[name] * multipliers[name] for name in base}
    # Not `sum`, which from Python 3.12 on compensates: a receipt must replay under every interpreter.
    total = 0.0
    for product in products.values():
        total += product
    if normalised and total:
        return {name: product / total for name, product in products.items()}
    return products


def score_of(
    *,
    formula: str,
    applied: Mapping[str, float],
    features: Features,
    raw: Raw,
    adjustments: Sequence[Adjustment],
    fusion_k: int = 60,
) -> float:
    """The score that these recorded values give; live scoring and replay call nothing else."""
    if formula == "weighted":
        value = 0.0
        for name, feature in zip(FEATURES, _IN_ORDER(features), strict=True):
            value += applied[name] * feature
    else:
        ranks = ranks_of(raw)
        value = 0.0
        for name, weight in applied.items():
            rank = ranks[name]
            if rank is not None:
                value += weight / (fusion_k + rank)
    for step in adjustments:
        if step.kind == SESSION_DECAY:
            value = round(round(value, DECIMALS) * step.coefficient, DECIMALS)
        elif step.kind == "relevance_cap":
            value = min(value, step.coefficient)
        elif step.kind == "temporal_bonus":
            value += step.coefficient
        elif step.kind == RERANK_KEEP:
            value = round(value, DECIMALS) * step.coefficient
        elif step.kind == RERANK:
            value = round(value + step.coefficient, DECIMALS)  # as `reranked_score`
        else:
            value *= step.coefficient
    return round(value, DECIMALS)


def reranked_score(score: float, *, keep: float, added: float) -> float:
    """A returned score after the two steps of a reranker."""
    return round(score * keep + added, DECIMALS)


def raw_of(candidate: Candidate) -> Raw:
    """What the channels said of a candidate."""
    return Raw(
        candidate.bm25,
        candidate.cosine,
        candidate.lexical_rank,
        candidate.semantic_rank,
        candidate.hops,
        candidate.graph_rank,
        candidate.pinned_rank,
    )


def ranks_of(raw: Raw) -> dict[str, int | None]:
    """The place of a row in each channel; None where the channel did not return it."""
    return {
        "lexical": raw.lexical_rank,
        "semantic": raw.semantic_rank,
        "graph": raw.graph_rank,
        "pinned": raw.pinned_rank,
    }


@dataclass(frozen=True, slots=True)
class Wording:
    """What an analysis of the query found, as scoring needs it.

    Attributes:
        window: the time that the query speaks of, half-open.
        current: nodes that are the latest edition of what they tell, where the query asks for the present state.
    """

    window: tuple[datetime, datetime] | None = None
    current: frozenset[UUID] = frozenset()


NO_WORDING = Wording()


def score_pool(
    pool: Sequence[Candidate],
    table: Sequence[Features],
    policy: ScoringPolicy,
    weights: Weights,
    wording: Wording = NO_WORDING,
) -> list[Scored]:
    """Every candidate of the pool with its score, best first."""
    epistemic, kinds = policy.epistemic.model_dump(), policy.kinds.model_dump()
    by_request = policy.temporal_bonus > 0 or policy.relevance_floor > 0 or policy.current_update != 1.0
    plain = _plain(table, weights) if policy.formula == "weighted" else None
    scored = []
    for place, (candidate, features) in enumerate(zip(pool, table, strict=True)):
        node = candidate.node
        steps: tuple[Adjustment, ...] = ()
        if by_request or epistemic[node.epistemic] != 1.0 or kinds[node.kind] != 1.0:
            steps = tuple(_adjustments(candidate, features, policy, wording))
        if plain is None or steps:
            value = score_of(
                formula=policy.formula,
                applied=weights.applied,
                features=features,
                raw=raw_of(candidate),
                adjustments=steps,
                fusion_k=policy.fusion_k,
            )
        else:
            value = plain[place]
        scored.append(Scored(candidate, candidate, features, steps, value))
    return sorted(scored, key=Scored.order)


def _plain(table: Sequence[Features], weights: Weights) -> list[float]:
    """The scores of all rows by the weighted formula alone: what `score_of` gives, to the bit."""
    if not table:
        return []
    columns = np.array([_IN_ORDER(features) for features in table]).T
    applied = np.array([[weights.applied[name] for name in FEATURES]])
    scores: list[float] = round_scores(weighted_sums(columns, applied, _ONE_VECTOR)).tolist()
    return scores


def _adjustments(
    candidate: Candidate, features: Features, policy: ScoringPolicy, wording: Wording
) -> list[Adjustment]:
    """The steps after the formula, in their order; one that changes nothing is none."""
    steps = []
    epistemic = getattr(policy.epistemic, candidate.node.epistemic)
    if epistemic != 1.0:
        steps.append(Adjustment("epistemic", epistemic))
    kind = getattr(policy.kinds, candidate.node.kind)
    if kind != 1.0:
        steps.append(Adjustment("kind", kind))
    if policy.temporal_bonus > 0 and _within(candidate, wording.window):
        steps.append(Adjustment("temporal_bonus", policy.temporal_bonus))
    relevance = features.semantic + features.lexical
    if policy.relevance_floor > 0 and relevance < policy.relevance_floor:
        steps.append(Adjustment("relevance_cap", relevance))
    if policy.current_update != 1.0 and candidate.node.id in wording.current:
        steps.append(Adjustment("current_update", policy.current_update))
    return steps


def _within(candidate: Candidate, window: tuple[datetime, datetime] | None) -> bool:
    if window is None:
        return False
    moment = candidate.node.event_at or candidate.node.updated_at
    return window[0] <= moment < window[1]


def inherit(
    ranked: Sequence[Scored], neighbours: Sequence[tuple[UUID, Candidate]], policy: ScoringPolicy
) -> list[Scored]:
    """Let neighbours of the first rows enter or rise; best first.

    Args:
        neighbours: (id of the row it stands beside, the neighbour) pairs.
    """
    by_id = {one.candidate.node.id: one for one in ranked}
    best = dict(by_id)
    for source_id, neighbour in neighbours:
        source = by_id[source_id]
        raised = round(source.score * policy.session.decay, DECIMALS)
        present = best.get(neighbour.node.id)
        if present is not None and present.score >= raised:
            continue
        step = Adjustment(SESSION_DECAY, policy.session.decay, source_id)
        best[neighbour.node.id] = replace(
            source,
            candidate=by_id[neighbour.node.id].candidate if neighbour.node.id in by_id else neighbour,
            adjustments=(*source.adjustments, step),
            score=raised,
            base=source_id,
        )
    return sorted(best.values(), key=Scored.order)
