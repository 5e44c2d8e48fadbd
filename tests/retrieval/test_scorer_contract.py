"""Frozen inputs: when the same inputs get another score or order, the contract version must change, too."""

import hashlib
import random
from datetime import timedelta
from uuid import UUID

import pytest

from apps.core import canonical
from apps.retrieval.candidates import Candidate
from apps.retrieval.features import features
from apps.retrieval.policy import SCORER_CONTRACT, ScoringPolicy
from apps.retrieval.scoring import applied_weights, inherit, score_pool
from tests.retrieval.test_scoring import NOW, node

FROZEN = {"native-1": "ef6415a3cf251e618ed468d06d569a909bdb34e4f4ba10372db7e645b41c56b8"}
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


def outcome() -> list[list[list[object]]]:
    """[id, score] in order, for each policy and multipliers; the last ten of the pool are neighbours of the first."""
    results = []
    candidates = pool()
    for given in POLICIES:
        policy = ScoringPolicy.model_validate(given)
        for multipliers in MULTIPLIERS[policy.formula]:
            table = features(candidates[:50], at=NOW, recency_per_day=policy.recency_per_day)
            ranked = score_pool(candidates[:50], table, policy, applied_weights(policy, multipliers))
            beside = [(ranked[0].candidate.node.id, each) for each in candidates[50:]]
            beside.append((ranked[0].candidate.node.id, ranked[-1].candidate))
            ordered = inherit(ranked, beside, policy)
            results.append([[str(one.candidate.node.id), one.score] for one in ordered])
    return results


def test_the_scores_are_those_of_the_contract() -> None:
    digest = hashlib.sha256(canonical.dumps(outcome())).hexdigest()
    assert FROZEN.get(SCORER_CONTRACT) == digest, (
        "the same inputs score or sort differently: bump SCORER_CONTRACT, and add its digest here"
    )


def test_every_contract_but_the_newest_keeps_its_digest() -> None:
    assert list(FROZEN)[-1] == SCORER_CONTRACT


def test_a_changed_constant_or_step_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = outcome()
    monkeypatch.setattr("apps.retrieval.scoring.DECIMALS", 9)
    assert outcome() != before
