"""Arithmetic of replay: formulas, adjustments, tie rules and rounding."""

import numpy as np
import pytest

from apps.retrieval.prme.documents import Adjustment, RankFusion
from apps.retrieval.prme.reading import parse_receipt
from apps.retrieval.prme.replay import adjusted, fused_score, replay, weighted_score
from apps.retrieval.prme.rounding import round_scores
from tests.support.prme import dump, make_receipt, node_id


def test_the_relevance_cap_holds_only_below_the_floor() -> None:
    low, at = (0.1, 0.1, 1.0, 1.0, 1.0, 1.0), (0.2, 0.15, 1.0, 1.0, 1.0, 1.0)
    document = parse_receipt(dump(make_receipt((low, at))))
    provenance = document.score_provenance
    assert provenance is not None
    assert weighted_score(provenance[node_id(0)].trace, provenance[node_id(0)].weights) == 0.2
    assert weighted_score(provenance[node_id(1)].trace, provenance[node_id(1)].weights) > 0.35


def test_adjustments_are_applied_unrounded() -> None:
    def operation(kind: str, coefficient: float, neural: float | None = None) -> Adjustment:
        values = {"kind": kind, "coefficient": coefficient, "neural_score": neural}
        return Adjustment.model_validate(values | {"source_node_id": node_id(0)})

    assert adjusted(0.3, operation("session_decay", 1 / 3)) == 0.3 * (1 / 3)
    assert adjusted(0.3, operation("neural_blend", 0.3, 0.8)) == (1 - 0.3) * 0.8 + 0.3 * 0.3
    assert adjusted(0.3, operation("neural_rank_assignment", 0.77)) == 0.77


def test_rank_fusion_counts_present_channels_and_breaks_ties_below_the_last_decimal() -> None:
    factors = {"epistemic_factor": 1.0, "node_type_factor": 1.0, "temporal_factor": 1.0}
    both = RankFusion.model_validate({"semantic_rank": 1, "lexical_rank": 1, **factors})
    one = RankFusion.model_validate({"semantic_rank": None, "lexical_rank": 1, **factors})
    late = RankFusion.model_validate({"semantic_rank": 1, "lexical_rank": 1, "tie_break": 0.5, **factors})
    nothing = {"semantic_rank": None, "lexical_rank": None, "tie_break": 0.5, **factors}
    assert fused_score(both, 60) == 1.0
    assert fused_score(one, 60) == 0.5
    assert fused_score(late, 60) == 1.0 - 0.5e-11
    assert fused_score(RankFusion.model_validate(nothing), 60) == 0.0


@pytest.mark.parametrize(
    ("policy", "order"),
    [("score_path_id", (1, 2, 0)), ("score_id", (0, 1, 2)), ("reranked_prefix", (2, 1, 0))],
)
def test_ranking_policies(policy: str, order: tuple[int, ...]) -> None:
    document = make_receipt(((0.5,) * 6,) * 3)
    document["ranking_policy"] = policy
    by_id = {candidate["node_id"]: candidate for candidate in document["candidates"]}
    for index, path in enumerate((1 / 3, 2 / 3, 2 / 3)):
        for trace in (by_id[node_id(index)]["trace"], document["score_provenance"][node_id(index)]["trace"]):
            trace["path_score"] = path
    by_id[node_id(2)]["reranker_score"] = 0.1
    assert replay(parse_receipt(dump(document))).order == tuple(map(node_id, order))


def test_array_rounding_equals_cpython() -> None:
    random = np.random.default_rng(5)
    halves = (2 * np.arange(1, 4001) + 1) / 2**11
    near_halves = np.arange(4000) * 1e-10 + 0.5e-10
    odd = np.array([0.0, -0.0, 1e-300, 13.7, 14.0, 1e6 + 1 / 3, 4.6e5 + 1e-10, 1e300, -2.5e-10])
    values = np.concatenate([random.uniform(-2, 2, 50_000), halves, near_halves, -near_halves, odd])
    expected = np.array([round(value, 10) for value in values.tolist()])
    rounded = round_scores(values)
    np.testing.assert_array_equal(rounded, expected)
    np.testing.assert_array_equal(np.signbit(rounded), np.signbit(expected))
    assert (np.round(values[:-2], 10) != rounded[:-2]).any(), "the values do not tell the two ways apart"
