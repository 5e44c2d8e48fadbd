"""Scores from columns are the doubles of the scalar replay, under any multipliers."""

import math

import numpy as np
import pytest

from apps.learning.exceptions import LearningInputError
from apps.learning.prme_receipts import PrmeReceiptColumns
from apps.learning.receipt_set import ReceiptSet
from apps.learning.scorer import FEATURES, applied_weights
from apps.retrieval.prme import PrmeReceipt, iter_receipts, read_receipt
from apps.retrieval.prme.documents import ScoreProvenance
from apps.retrieval.prme.replay import final_score
from tests.support import judged_data
from tests.support.prme import dump, make_receipt, node_id

ONES = np.ones(len(FEATURES))
SETS = ("weighted-v2", "weighted-v12", "served", "holdout")


def columns(receipts: list[PrmeReceipt]) -> ReceiptSet:
    collected = PrmeReceiptColumns()
    for receipt in receipts:
        collected.add(receipt)
    return collected.build()


def weighted_receipts(name: str) -> list[PrmeReceipt]:
    receipts = iter_receipts(judged_data("prme") / name / "receipts.jsonl.gz")
    fitted = [r for r in receipts if r.can_replay and not r.document.is_rank_fused]
    return sorted(fitted, key=lambda receipt: receipt.document.request_id)


def scalar_score(provenance: ScoreProvenance, multipliers: list[float]) -> float:
    """The reference's way: scale the applied weights, divide by their sum, replay."""
    scaled = [weight * m for weight, m in zip(provenance.weights.additive, multipliers, strict=True)]
    total = sum(scaled)
    names = [f"w_{name}" for name in FEATURES]
    weights = provenance.weights.model_copy(
        update=dict(zip(names, (value / total for value in scaled), strict=True))
    )
    return final_score(provenance.model_copy(update={"weights": weights}))


def all_provenances(receipts: list[PrmeReceipt]) -> list[ScoreProvenance]:
    return [
        (receipt.document.score_provenance or {})[candidate.node_id]
        for receipt in receipts
        for candidate in receipt.document.candidates
    ]


@pytest.mark.parametrize("name", SETS)
def test_unity_gives_the_recorded_scores_bit_for_bit(name: str) -> None:
    receipts = columns(weighted_receipts(name))
    assert len(receipts.recorded) > 0
    np.testing.assert_array_equal(receipts.scorer.scores(ONES), receipts.recorded)
    np.testing.assert_array_equal(applied_weights(receipts.scorer.weights, ONES), receipts.scorer.weights)


@pytest.mark.parametrize("name", SETS)
def test_any_multipliers_give_the_scalar_scores_bit_for_bit(name: str) -> None:
    receipts = weighted_receipts(name)
    multipliers = [0.25, 4.0, 1.7, 0.6065306597126334, 1.0, 3.3]
    expected = [scalar_score(provenance, multipliers) for provenance in all_provenances(receipts)]
    np.testing.assert_array_equal(columns(receipts).scorer.scores(np.array(multipliers)), expected)


def test_a_selection_scores_like_the_whole() -> None:
    scorer = columns(weighted_receipts("weighted-v12")).scorer
    rows = np.random.default_rng(1).permutation(len(scorer))[:700]
    multipliers = np.array([0.5, 2.0, 1.0, 1.5, 0.7, 1.0])
    np.testing.assert_array_equal(scorer.take(rows).scores(multipliers), scorer.scores(multipliers)[rows])


@pytest.mark.parametrize("bad", [0.2499, 4.0001, math.nan, math.inf, -1.0, 0.0])
def test_multipliers_out_of_bounds_are_refused(bad: float) -> None:
    weights = np.array([[0.25, 0.2, 0.2, 0.1, 0.1, 0.15]])
    for index in range(len(FEATURES)):
        multipliers = ONES.copy()
        multipliers[index] = bad
        with pytest.raises(LearningInputError):
            applied_weights(weights, multipliers)
        multipliers[index] = 0.25
        assert applied_weights(weights, multipliers).sum() == pytest.approx(1)
        multipliers[index] = 4.0
        assert applied_weights(weights, multipliers).sum() == pytest.approx(1)


def test_zero_weights_stay_zero() -> None:
    weights = np.array([[0.6, 0.4, 0.0, 0.0, 0.0, 0.0]])
    applied = applied_weights(weights, np.array([2.0, 0.5, 4.0, 4.0, 4.0, 4.0]))
    assert applied[0, 2:].tolist() == [0.0] * 4
    assert applied[0, 0] == 1.2 / 1.4


def test_every_kind_of_adjustment_is_carried_over() -> None:
    document = make_receipt(((0.9, 0.8, 0.4, 0.5, 0.6, 0.7), (0.6, 0.5, 0.4, 0.5, 0.6, 0.7)), version=13)
    first = document["score_provenance"][node_id(0)]
    chain = [("neural_blend", 0.3, 0.8), ("current_update", 1.3, None), ("neural_rank_assignment", 0.9, None)]
    chain += [("episode_decay", 0.95, None), ("evidence_projection", 0.9, None)]
    first["adjustments"] = [
        {"kind": kind, "coefficient": c, "neural_score": neural, "source_node_id": node_id(0)}
        for kind, c, neural in chain
    ]
    score = 0.9 * 0.95 * 0.9
    document["candidates"][0]["score"] = score
    receipts = columns([read_receipt(dump(document))])
    assert receipts.scorer.scores(ONES)[0] == score
    assert receipts.scorer.scores(np.array([4.0, 0.25, 1, 1, 1, 1]))[0] == score
