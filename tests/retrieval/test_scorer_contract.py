"""Frozen inputs: when the same inputs get another score or order, the contract version must change, too."""

import hashlib
import random
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from apps.core import canonical
from apps.retrieval.candidates import Candidate
from apps.retrieval.features import features
from apps.retrieval.policy import CONTRACTS, SCORER_CONTRACT, ScoringPolicy
from apps.retrieval.reranking import blended
from apps.retrieval.scoring import NO_WORDING, Wording, applied_weights, inherit, score_pool
from tests.retrieval.test_scoring import NOW, node

FROZEN = {
    "native-1": "ef6415a3cf251e618ed468d06d569a909bdb34e4f4ba10372db7e645b41c56b8",
    "native-2": "0dc01ce40222f6dfa5e1e6bd98e817f328260958f7bd03404595d38204890fee",
}
"""Digest of all scores and orders below, by contract. A changed digest is a new contract: add one, change none."""

# Written out, so that other defaults are no change of the contract.
POLICIES = [
    {
        "formula": formula,
        "weights": dict(
            zip(
                ("semantic", "lexical", "graph", "recency", "salience", "confidence"),
                (0.36, 0.36, 0.08, 0.06, 0.07, 0.07),
                strict=True,
            )
        ),
        "fusion_k": 60,
        "recency_per_day": 0.02,
        "epistemic": {"observed": 1.0, "asserted": 0.9, "inferred": 0.7, "unverified": 0.5},
        "kinds": {"passage": 1.0, "episodic": 0.8},
        "relevance_floor": floor,
        "session": {"enabled": True, "top": 20, "distance": 2, "decay": 0.8},
    }
    for formula in ("weighted", "rank_fusion")
    for floor in (0.0, 0.9)
]
MULTIPLIERS = {
    "weighted": [None, {"semantic": 0.25, "recency": 4.0}],
    "rank_fusion": [None, {"semantic": 2.5}],
}


LATER_POLICY = {
    "query_analysis": "wording",
    "temporal_bonus": 0.05,
    "current_update": 1.5,
    "rerank": {"top": 8, "keep": 0.6},
}
WORDING = Wording(
    window=(NOW - timedelta(days=90), NOW), current=frozenset(UUID(int=n * 7919) for n in range(1, 61, 9))
)


def pool() -> list[Candidate]:
    """Sixty candidates of every standing; drawn from a generator whose numbers Python guarantees."""
    draw = random.Random(20260601)
    found = []
    for number in range(1, 61):
        lexical, semantic = draw.random() < 0.7, draw.random() < 0.7
        attributes = node(
            number,
            id=UUID(int=number * 7919),
            kind="episodic" if draw.random() < 0.2 else "passage",
            epistemic=("observed", "asserted", "inferred", "unverified")[int(draw.random() * 4)],
            confidence=draw.random(),
            weight=1 + draw.random() * 4,
            useful_count=int(draw.random() * 9),
            pinned=draw.random() < 0.05,
            updated_at=NOW - timedelta(days=draw.random() * 900),
        )
        bm25 = draw.random() * 20 if lexical else None
        cosine = draw.random() if semantic else None
        found.append(
            Candidate(
                attributes, bm25, cosine, number if lexical else None, 61 - number if semantic else None
            )
        )
    return found


def linked(candidates: list[Candidate]) -> list[Candidate]:
    """The same, some of them also returned by the graph and as pinned."""
    draw = random.Random(20261130)
    found = []
    for number, each in enumerate(candidates, 1):
        by_graph, pinned = draw.random() < 0.4, draw.random() < 0.1
        hops = int(draw.random() * 3) if by_graph else None
        found.append(
            replace(
                each,
                hops=hops,
                graph_rank=number if by_graph else None,
                pinned_rank=number if pinned else None,
            )
        )
    return found


def outcome() -> list[list[list[object]]]:
    """What native-1 knew of."""
    return outcomes(pool(), {}, NO_WORDING)


def later_outcome() -> list[list[list[object]]]:
    """What native-2 added: channels, wording, a reranker."""
    return outcomes(linked(pool()), LATER_POLICY, WORDING)


def outcomes(
    candidates: list[Candidate], more: dict[str, object], wording: Wording
) -> list[list[list[object]]]:
    """[id, score] in order, for each policy and multipliers; the last ten of the pool are neighbours of the first."""
    results = []
    for given in POLICIES:
        policy = ScoringPolicy.model_validate(given | more)
        for multipliers in MULTIPLIERS[policy.formula]:
            table = features(candidates[:50], at=NOW, recency_per_day=policy.recency_per_day)
            weights = applied_weights(policy, multipliers)
            ranked = score_pool(candidates[:50], table, policy, weights, wording)
            beside = [(ranked[0].candidate.node.id, each) for each in candidates[50:]]
            beside.append((ranked[0].candidate.node.id, ranked[-1].candidate))
            ordered = inherit(ranked, beside, policy)
            if more:
                scores = [(n * 37 % 101) / 101 for n in range(policy.rerank.top)]
                ordered = blended(ordered, scores, policy.rerank)
            results.append([[str(one.candidate.node.id), one.score] for one in ordered])
    return results


def digest(outcome: list[list[list[object]]]) -> str:
    return hashlib.sha256(canonical.dumps(outcome)).hexdigest()


def test_the_scores_are_those_of_the_contract() -> None:
    assert digest(later_outcome()) == FROZEN.get(SCORER_CONTRACT), (
        "the same inputs score or sort differently: bump SCORER_CONTRACT, and add its digest here"
    )


def test_what_an_older_contract_knew_scores_as_it_did() -> None:
    assert digest(outcome()) == FROZEN["native-1"]


def test_every_contract_but_the_newest_keeps_its_digest() -> None:
    assert tuple(FROZEN) == CONTRACTS
    assert CONTRACTS[-1] == SCORER_CONTRACT


def test_a_changed_constant_or_step_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = outcome()
    monkeypatch.setattr("apps.retrieval.scoring.DECIMALS", 9)
    assert outcome() != before
