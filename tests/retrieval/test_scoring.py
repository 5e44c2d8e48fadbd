"""Features and scores: exact, in a fixed order, and the same to the bit when nothing is asked for."""

import math
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from apps.core.problems import InvalidRequest
from apps.retrieval.candidates import Attributes, Candidate
from apps.retrieval.features import features, min_max
from apps.retrieval.policy import FEATURES, FeatureWeights, KindFactors, ScoringPolicy
from apps.retrieval.schemas import Adjustment, Raw
from apps.retrieval.scoring import applied_weights, inherit, score_of, score_pool

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def node(number=1, **change):
    values = {
        "id": UUID(int=number),
        "principal_id": UUID(int=0),
        "kind": "passage",
        "subkind": "document",
        "epistemic": "observed",
        "confidence": 1.0,
        "weight": 1.0,
        "useful_count": 0,
        "unhelpful_count": 0,
        "pinned": False,
        "stale_at": None,
        "accessed_at": None,
        "updated_at": NOW,
        "event_at": None,
        "digest": "",
        "withdrawn": None,
        "valid_from": None,
        "valid_to": None,
        "repo": "conn:a",
        "type": "document",
        "identity": str(number),
        "part": 0,
        "version": "v",
        "path": None,
        "number": None,
        "session": None,
        "position": None,
        "cosine": None,
    }
    return Attributes(**values | change)


def candidate(number=1, bm25=None, cosine=None, lexical_rank=None, semantic_rank=None, **change):
    return Candidate(node(number, **change), bm25, cosine, lexical_rank, semantic_rank)


def scored(pool, policy=None, multipliers=None):
    policy = policy or ScoringPolicy()
    table = features(pool, at=NOW, recency_per_day=policy.recency_per_day)
    return score_pool(pool, table, policy, applied_weights(policy, multipliers))


@pytest.mark.parametrize(
    ("values", "scaled"),
    [
        ([], []),
        ([3.0], [1.0]),
        ([2.0, 2.0], [1.0, 1.0]),
        ([1.0, 3.0, 2.0], [0.0, 1.0, 0.5]),
        ([None, None], [0.0, 0.0]),
        ([None, 5.0], [0.0, 1.0]),
        ([None, 1.0, 3.0], [0.0, 0.0, 1.0]),
        ([-1.0, 0.0, 1.0], [0.0, 0.5, 1.0]),
    ],
)
def test_min_max(values, scaled) -> None:
    assert min_max(values).tolist() == scaled


def test_features_of_time_prior_and_confidence() -> None:
    pool = [
        candidate(1, event_at=NOW - timedelta(days=50), updated_at=NOW, confidence=0.5),
        candidate(2, updated_at=NOW - timedelta(days=10)),
        candidate(3, event_at=NOW + timedelta(days=3)),
        candidate(4, pinned=True),
    ]
    table = features(pool, at=NOW, recency_per_day=0.02)
    assert table[0].recency == pytest.approx(math.exp(-1))
    assert table[1].recency == pytest.approx(math.exp(-0.2))
    assert table[2].recency == 1.0
    assert table[0].confidence == 0.5
    assert table[3].salience == 1.0
    assert table[0].salience == pytest.approx(0.75 / 1.5)
    assert all(0 <= value <= 1 for row in table for value in (getattr(row, name) for name in FEATURES))


def test_the_weighted_score_is_the_sum_rounded_to_ten_digits() -> None:
    (one,) = scored([candidate(bm25=3.0, cosine=0.8, lexical_rank=1, semantic_rank=1)])
    expected = 0.36 + 0.36 + 0.06 + 0.07 * (1 / 1.5) + 0.07
    assert one.score == round(expected, 10)
    assert one.adjustments == ()


def test_order_is_score_then_channels_then_id() -> None:
    tied = {"lexical_rank": 1, "bm25": 1.0}
    pool = [candidate(3, **tied), candidate(2, **tied), candidate(1, **tied, semantic_rank=1)]
    assert [one.candidate.node.id.int for one in scored(pool)] == [1, 2, 3]


def test_unity_multipliers_are_the_base_bit_for_bit() -> None:
    pool = [candidate(n, bm25=n / 3, cosine=n / 7, lexical_rank=n, semantic_rank=n) for n in range(1, 40)]
    plain, unity = scored(pool), scored(pool, multipliers=dict.fromkeys(FEATURES, 1.0))
    assert plain == unity
    weights = applied_weights(ScoringPolicy(), dict.fromkeys(FEATURES, 1.0))
    assert weights.applied is weights.base


def test_multipliers_are_normalised_and_zero_weights_stay_zero() -> None:
    policy = ScoringPolicy(
        weights=FeatureWeights(semantic=0.5, lexical=0.5, graph=0.0, recency=0, salience=0, confidence=0)
    )
    weights = applied_weights(policy, {"semantic": 3.0, "graph": 4.0})
    assert weights.applied == {
        "semantic": 0.75,
        "lexical": 0.25,
        "graph": 0.0,
        "recency": 0.0,
        "salience": 0.0,
        "confidence": 0.0,
    }


@pytest.mark.parametrize("value", [0.25, 4.0])
def test_the_bounds_of_multipliers_are_allowed(value) -> None:
    assert applied_weights(ScoringPolicy(), {"lexical": value}).multipliers["lexical"] == value


@pytest.mark.parametrize("value", [0.2499, 4.0001, math.nan, math.inf, -1.0, 0.0])
def test_multipliers_out_of_bounds_are_refused_by_name(value) -> None:
    with pytest.raises(InvalidRequest) as refused:
        applied_weights(ScoringPolicy(), {"lexical": value})
    assert refused.value.pointer == "/ranking_multipliers/lexical"
    with pytest.raises(InvalidRequest):
        applied_weights(ScoringPolicy(), {"unknown": 1.0})


def test_rank_fusion_adds_reciprocal_ranks() -> None:
    policy = ScoringPolicy(formula="rank_fusion")
    pool = [
        candidate(1, lexical_rank=1, semantic_rank=2),
        candidate(2, semantic_rank=1),
        candidate(3, lexical_rank=2),
    ]
    ranked = scored(pool, policy)
    assert [one.candidate.node.id.int for one in ranked] == [1, 2, 3]
    assert ranked[0].score == round(1 / 61 + 1 / 62, 10)
    assert ranked[1].score == round(1 / 61, 10)
    assert scored([], policy) == []
    doubled = scored(pool, policy, {"lexical": 2.0})
    assert doubled[0].score == round(2 / 61 + 1 / 62, 10)


def test_factors_apply_in_order_and_are_recorded() -> None:
    policy = ScoringPolicy(kinds=KindFactors(episodic=1.2), relevance_floor=2.0)
    (one,) = scored([candidate(kind="episodic", epistemic="inferred", bm25=1.0, lexical_rank=1)], policy)
    assert [(step.kind, step.coefficient) for step in one.adjustments] == [
        ("epistemic", 0.7),
        ("kind", 1.2),
        ("relevance_cap", 1.0),
    ]


def test_the_score_follows_from_what_is_recorded() -> None:
    pool = [
        candidate(
            n, bm25=(n * 7 % 5) / 3, cosine=n / 7, lexical_rank=n, semantic_rank=n, epistemic="asserted"
        )
        for n in range(1, 30)
    ]
    for formula in ("weighted", "rank_fusion"):
        policy = ScoringPolicy(formula=formula)
        weights = applied_weights(policy, {"lexical": 1.7})
        for one in scored(pool, policy, {"lexical": 1.7}):
            again = score_of(
                formula=formula,
                applied=weights.applied,
                features=one.features,
                raw=one.raw,
                adjustments=one.adjustments,
                fusion_k=policy.fusion_k,
            )
            assert again == one.score


def test_neighbours_enter_or_rise_with_the_features_of_their_source() -> None:
    policy = ScoringPolicy()
    pool = [candidate(1, bm25=9.0, lexical_rank=1), candidate(2, bm25=1.0, lexical_rank=2)]
    ranked = scored(pool, policy)
    source = ranked[0]
    lifted = inherit(
        ranked, [(source.candidate.node.id, candidate(2)), (source.candidate.node.id, candidate(7))], policy
    )
    by_id = {one.candidate.node.id.int: one for one in lifted}
    assert by_id[7].score == round(source.score * 0.8, 10)
    assert by_id[7].features == source.features
    assert by_id[7].adjustments == (Adjustment("session_decay", 0.8, source.candidate.node.id),)
    assert by_id[7].base == source.candidate.node.id
    assert by_id[2].score == max(ranked[1].score, by_id[7].score)
    again = score_of(
        formula="weighted",
        applied=policy.weights.vector(),
        features=by_id[7].features,
        raw=Raw(),
        adjustments=by_id[7].adjustments,
    )
    assert again == by_id[7].score


def test_a_neighbour_that_stands_higher_alone_keeps_its_score() -> None:
    policy = ScoringPolicy()
    ranked = scored([candidate(1, bm25=1.0, lexical_rank=1), candidate(2, bm25=0.99, lexical_rank=2)], policy)
    high = scored([candidate(1, bm25=1.0, lexical_rank=1), candidate(2, bm25=1.0, lexical_rank=2)], policy)
    assert inherit(high, [(UUID(int=1), candidate(2))], policy) == high
    assert len(inherit(ranked, [], policy)) == 2


def test_the_default_weights_are_the_published_ones() -> None:
    assert FeatureWeights().vector() == {
        "semantic": 0.36,
        "lexical": 0.36,
        "graph": 0.08,
        "recency": 0.06,
        "salience": 0.07,
        "confidence": 0.07,
    }
