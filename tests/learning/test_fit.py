"""The coordinate search and its loss, against a plain spelling and against frozen results."""

import math

import numpy as np
import pytest

from apps.learning.evaluate import EvaluationInputs
from apps.learning.fit import IMPLEMENTATION_VERSION, PairwiseObjective, coordinate_search, pairwise_objective
from apps.learning.metrics import JudgedPool
from apps.learning.scorer import FEATURES, FloatArray
from apps.learning.selection import Selection, select
from tests.support.learning import Request, lexical_requests, make_inputs


def objective_of(requests: list[Request]) -> tuple[PairwiseObjective, JudgedPool, list[str]]:
    inputs = make_inputs(requests)
    selection = selected(inputs)
    names = [inputs.receipts.query_identities[index] for index in selection.receipts]
    group = np.unique(names, return_inverse=True)[1]
    scorer = inputs.receipts.scorer.take(selection.rows)
    objective = pairwise_objective(scorer, selection.pool, group, margin_scale=5.0, regularization=0.01)
    return objective, selection.pool, names


def selected(inputs: EvaluationInputs) -> Selection:
    return select(
        inputs.receipts,
        inputs.labels,
        scopes=("project",),
        surface="results",
        contract="native:1",
        max_pairs_per_request=10_000,
    )


def plain_loss(objective: PairwiseObjective, pool: JudgedPool, names: list[str], m: FloatArray) -> float:
    scores = objective.scorer.scores(m)
    by_group: dict[str, list[float]] = {}
    for request, name in enumerate(names):
        rows = [i for i in range(len(scores)) if pool.request[i] == request]
        good = [scores[i] for i in rows if pool.relevant[i]]
        bad = [scores[i] for i in rows if not pool.relevant[i]]
        losses = [math.log(1 + math.exp(5 * (n - p))) for p in good for n in bad]
        by_group.setdefault(name, []).append(sum(losses) / len(losses))
    means = [sum(values) / len(values) for values in by_group.values()]
    return sum(means) / len(means) + 0.01 * sum(math.log(value) ** 2 for value in m.tolist())


@pytest.mark.parametrize("multipliers", [[1.0] * 6, [0.25, 4.0, 1.0, 0.5, 2.0, 1.3]])
def test_the_loss_is_a_mean_of_means(multipliers: list[float]) -> None:
    requests = lexical_requests(12)
    for index in (3, 4, 5):
        requests[index].query = "the same question"
    objective, pool, names = objective_of(requests)
    m = np.array(multipliers)
    assert objective(m) == pytest.approx(plain_loss(objective, pool, names, m), abs=1e-12)


def test_a_repeated_query_does_not_weigh_more() -> None:
    requests = lexical_requests(4)
    twice = [*requests, requests[0]]
    assert objective_of(twice)[0](np.ones(6)) == pytest.approx(
        objective_of(requests)[0](np.ones(6)), abs=1e-12
    )


def test_blocks_do_not_change_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    objective, _, _ = objective_of(lexical_requests(30))
    whole = objective(np.ones(6))
    monkeypatch.setattr("apps.learning.fit._BLOCK", 7)
    assert objective(np.ones(6)) == pytest.approx(whole, abs=1e-12)


def test_extreme_margins_do_not_overflow() -> None:
    objective, pool, names = objective_of(lexical_requests(3))
    steep = PairwiseObjective(
        objective.scorer, objective.winner, objective.loser, objective.weight, 1e5, objective.regularization
    )
    with np.errstate(all="raise", under="ignore"):
        assert math.isfinite(steep(np.ones(6)))
    assert len(names) == pool.num_requests


def test_the_search_is_the_documented_one() -> None:
    """A loss whose minimum in log space is known; every call is written down."""
    target, calls = [0.5, -0.5, 0.0, 0.125, 2.0, 0.0], []

    def loss(multipliers: FloatArray) -> float:
        logs = [math.log(value) for value in multipliers.tolist()]
        calls.append([round(value, 4) for value in logs])
        return sum((value - wanted) ** 2 for value, wanted in zip(logs, target, strict=True))

    fitted = coordinate_search(loss, passes_per_step=4)
    assert calls[:5] == [
        [0.0] * 6,
        [-0.5, *[0.0] * 5],
        [0.5, *[0.0] * 5],
        [0.5, -0.5, *[0.0] * 4],
        [0.5, 0.5, *[0.0] * 4],
    ]
    logs = np.log(fitted.multipliers)
    assert logs[:4] == pytest.approx(target[:4], abs=1e-12)
    assert fitted.multipliers[4] == 4.0
    assert fitted.loss_before == pytest.approx(sum(value**2 for value in target))
    assert fitted.loss_after < fitted.loss_before
    assert ((fitted.multipliers >= 0.25) & (fitted.multipliers <= 4)).all()


def test_a_decrease_within_the_tolerance_changes_nothing() -> None:
    def loss(multipliers: FloatArray) -> float:
        return 1.0 if (multipliers == 1).all() else 1.0 - 0.9e-12

    assert coordinate_search(loss, passes_per_step=4).multipliers.tolist() == [1.0] * 6


def test_passes_bound_how_far_a_step_goes() -> None:
    def loss(multipliers: FloatArray) -> float:
        return -float(np.log(multipliers[0]))

    one = coordinate_search(loss, passes_per_step=1)
    assert np.log(one.multipliers[0]) == pytest.approx(0.5 + 0.25 + 0.125 + 0.0625)
    assert coordinate_search(loss, passes_per_step=20).multipliers[0] == 4.0


def test_results_are_frozen_until_the_implementation_version_is_bumped() -> None:
    objective, _, _ = objective_of(lexical_requests(60))
    fitted = coordinate_search(objective, passes_per_step=4)
    assert IMPLEMENTATION_VERSION == 1
    frozen = dict(zip(FEATURES, fitted.multipliers.tolist(), strict=True))
    assert frozen == pytest.approx(FROZEN, abs=1e-9)
    assert fitted.loss_before == pytest.approx(FROZEN_BEFORE, abs=1e-9)
    assert fitted.loss_after == pytest.approx(FROZEN_AFTER, abs=1e-9)


FROZEN = {
    "semantic": 0.3210063541719354,
    "lexical": 4.0,
    "graph": 0.4168620196785084,
    "recency": 0.5352614285189903,
    "salience": 0.5352614285189903,
    "confidence": 0.44374731008107987,
}
FROZEN_BEFORE, FROZEN_AFTER = 0.625131426458637, 0.30187744792274135
