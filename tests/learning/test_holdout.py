"""Full-retrieval holdout: what makes a pair, what the gate asks, and what may not overlap."""

from dataclasses import replace
from typing import Any

import pytest

from apps.learning.exceptions import (
    ConflictingIdentity,
    ForeignInput,
    LearningInputError,
    Overlap,
    PairMismatch,
    UnknownReference,
)
from apps.learning.gate import weaker_evaluation_settings, weaker_holdout_settings
from apps.learning.holdout import evaluate_holdout
from apps.learning.identity import named_group_id, query_group_id
from apps.learning.pairs import Arm, HoldoutInputs, check_overlap, checked_pairs
from apps.learning.schemas import GatePolicy, HoldoutConfig, HoldoutTrial, LearningConfig, RankingMultipliers

PROPOSED = RankingMultipliers(lexical=2.0)


def make_arm(name: str, order: str, multipliers: RankingMultipliers | None = None, **changes: Any) -> Arm:
    arm = Arm(
        request_id=name,
        checksum="0" * 64,
        owner="owner",
        scopes=("project",),
        query_identity=f"query {name[1:]}",
        fixed={"reference_time": "2026-11-01", "result_limit": 10, "parameter max_per_source": None},
        policy={"w_semantic": 0.25},
        features={"embedder": "e1"},
        features_sha256="1" * 64,
        multipliers=multipliers or RankingMultipliers(),
        order=tuple(order),
    )
    return replace(arm, **changes)


def make_pairs(outcomes: str, **trial: Any) -> HoldoutInputs:
    """One group a letter: `+` improves (rank 2 → 1), `-` regresses, `=` stays."""
    orders = {"+": ("xd", "dx"), "-": ("dx", "xd"), "=": ("dx", "dx")}
    arms: dict[str, Arm] = {}
    trials = []
    for index, outcome in enumerate(outcomes):
        before, after = orders[outcome]
        arms[f"b{index}"] = make_arm(f"b{index}", before)
        arms[f"c{index}"] = make_arm(f"c{index}", after, PROPOSED)
        trials.append(make_trial(index, **trial))
    return HoldoutInputs(
        owner="owner",
        scopes=("project",),
        arms=arms,
        trials=trials,
        proposal_input_checksum="2" * 64,
        memory_artifact_sha256="3" * 64,
        candidate_multipliers=PROPOSED,
        resampling="pcg64_multiply_shift",
    )


def make_trial(index: int, **changes: Any) -> HoldoutTrial:
    values = {
        "group_id": f"group {index:03}",
        "baseline_request_id": f"b{index}",
        "candidate_request_id": f"c{index}",
        "relevant_node_ids": ("d",),
    }
    return HoldoutTrial(**(values | changes))


def test_a_clear_improvement_passes_every_gate() -> None:
    report = evaluate_holdout(make_pairs("+" * 20 + "=" * 10), exploratory=False)
    assert report.decision == "improved_full_retrieval"
    assert report.failed_gates == ()
    assert not report.exploratory
    assert report.ndcg_gain == pytest.approx(20 / 30 * (1 - 0.6309297535714575))
    assert report.mrr_gain == pytest.approx(20 / 30 * 0.5)
    assert report.recall_gain == 0
    assert report.coverage == {"trials": 30, "query_groups": 30, "relevant_nodes": 30}


def test_imported_pairs_are_exploratory_unless_said_otherwise() -> None:
    assert evaluate_holdout(make_pairs("+" * 20)).exploratory


@pytest.mark.parametrize(("groups", "decision"), [(19, "insufficient_data"), (20, "improved_full_retrieval")])
def test_the_minimum_of_groups(groups: int, decision: str) -> None:
    report = evaluate_holdout(make_pairs("+" * groups))
    assert report.decision == decision
    assert (report.ndcg_gain_interval is None) == (groups < 20)


def test_a_positive_mean_with_too_many_regressions_is_no_improvement() -> None:
    report = evaluate_holdout(make_pairs("+" * 72 + "-" * 28))
    assert report.regression_fraction == 0.28
    assert report.ndcg_gain > 0.01
    assert report.ndcg_gain_interval is not None
    assert report.ndcg_gain_interval[0] > 0
    assert report.decision == "no_improvement"
    assert report.failed_gates == ("regression_fraction",)
    assert evaluate_holdout(make_pairs("+" * 90 + "-" * 10)).decision == "improved_full_retrieval"


def test_a_lower_recall_is_no_improvement() -> None:
    inputs = make_pairs("+" * 40)
    lost = replace(inputs.arms["c0"], order=("x",))
    report = evaluate_holdout(replace(inputs, arms=dict(inputs.arms) | {"c0": lost}))
    assert report.candidate_recall == pytest.approx(39 / 40)
    assert report.failed_gates == ("recall",)
    assert report.decision == "no_improvement"


def test_protected_slices() -> None:
    config = HoldoutConfig(protected_slices={"code": -0.05})
    inputs = make_pairs("+" * 38 + "--")
    sliced = [make_trial(i, slices=("code",) if i >= 38 else ()) for i in range(40)]
    unmeasured = evaluate_holdout(inputs, config=config)
    assert unmeasured.decision == "insufficient_data"
    assert unmeasured.failed_gates == ("protected_slice_unmeasured",)
    lost = evaluate_holdout(replace(inputs, trials=sliced), config=config)
    assert lost.decision == "no_improvement"
    assert lost.failed_gates == ("protected_slice",)
    assert lost.slices[0].query_groups == 2
    tolerant = HoldoutConfig(protected_slices={"code": -0.5})
    assert (
        evaluate_holdout(replace(inputs, trials=sliced), config=tolerant).decision
        == "improved_full_retrieval"
    )


def test_repeated_questions_weigh_as_one_group() -> None:
    inputs = make_pairs("+-")
    both = [make_trial(0, group_id="one"), make_trial(1, group_id="one")]
    report = evaluate_holdout(replace(inputs, trials=both))
    assert report.coverage["query_groups"] == 1
    assert report.ndcg_gain == pytest.approx(0)
    assert report.regression_fraction == 0


def test_the_order_of_trials_does_not_change_the_report() -> None:
    inputs = make_pairs("+-=" * 8)
    turned = replace(inputs, trials=list(inputs.trials)[::-1])
    assert evaluate_holdout(inputs).model_dump_json() == evaluate_holdout(turned).model_dump_json()


def test_grades_make_ndcg_graded_and_say_so() -> None:
    inputs = make_pairs("=")
    arms = {name: replace(arm, order=("e", "d")) for name, arm in inputs.arms.items()}
    trial = make_trial(0, relevant_node_ids=("d", "e"), grades={"d": 4, "e": 1})
    report = evaluate_holdout(replace(inputs, arms=arms, trials=[trial]))
    assert report.graded_trials == 1
    assert report.baseline_ndcg == pytest.approx((1 + 15 * 0.6309297535714575) / (15 + 0.6309297535714575))


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"owner": "another"}, ForeignInput),
        ({"scopes": ("personal",)}, PairMismatch),
        ({"scopes": None}, PairMismatch),
        ({"query_identity": "another"}, PairMismatch),
        ({"fixed": {"reference_time": "2026-11-02"}}, PairMismatch),
        ({"fixed": {}}, PairMismatch),
        ({"policy": {"w_semantic": 0.3}}, PairMismatch),
        ({"features": {"embedder": "e2"}}, PairMismatch),
        ({"multipliers": RankingMultipliers()}, PairMismatch),
    ],
)
def test_both_arms_are_one_request(changes: dict[str, Any], error: type[Exception]) -> None:
    inputs = make_pairs("++")
    arms = dict(inputs.arms) | {"c1": replace(inputs.arms["c1"], **changes)}
    with pytest.raises(error):
        evaluate_holdout(replace(inputs, arms=arms))


@pytest.mark.parametrize("changes", [{"policy": {"w_semantic": 0.3}}, {"features": {"embedder": "e2"}}])
def test_one_policy_and_one_feature_identity_cover_the_set(changes: dict[str, Any]) -> None:
    inputs = make_pairs("++")
    arms = {name: replace(arm, **changes) if name.endswith("1") else arm for name, arm in inputs.arms.items()}
    with pytest.raises(PairMismatch):
        evaluate_holdout(replace(inputs, arms=arms))


def test_no_receipt_and_no_query_twice() -> None:
    inputs = make_pairs("++")
    twice = [make_trial(0), make_trial(1, baseline_request_id="b0")]
    arms = {name: replace(arm, query_identity="one") for name, arm in inputs.arms.items()}
    with pytest.raises(ConflictingIdentity):
        evaluate_holdout(replace(inputs, trials=twice, arms=arms))
    with pytest.raises(ConflictingIdentity):
        evaluate_holdout(replace(inputs, arms=arms))
    with pytest.raises(UnknownReference):
        evaluate_holdout(replace(inputs, trials=[make_trial(7)]))
    with pytest.raises(LearningInputError):
        evaluate_holdout(replace(inputs, trials=[]))


@pytest.mark.parametrize(
    "changes",
    [
        {"group_id": " "},
        {"candidate_request_id": "b0"},
        {"relevant_node_ids": ()},
        {"relevant_node_ids": ("d", "d")},
        {"grades": {"e": 1}},
        {"grades": {"d": 0}},
        {"grades": {"d": 5}},
    ],
)
def test_malformed_trials_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        make_trial(0, **changes)


def test_overlap_with_the_evaluation_is_refused() -> None:
    pairs = checked_pairs(make_pairs("+"))
    check_overlap(pairs, request_ids=["other"], group_ids=[query_group_id("other")])
    for evaluated in (
        {"request_ids": ["c0"], "group_ids": []},
        {"request_ids": [], "group_ids": [query_group_id("query 0")]},
        {"request_ids": [], "group_ids": [named_group_id("group 000")]},
        {"request_ids": [], "group_ids": [], "query_identities": ["query 0"]},
    ):
        with pytest.raises(Overlap):
            check_overlap(pairs, **evaluated)


def test_stricter_than_the_gate_is_promotable_and_weaker_is_not() -> None:
    policy = GatePolicy(holdout=HoldoutConfig(protected_slices={"code": 0.0}))
    stricter = HoldoutConfig(
        min_query_groups=30, min_ndcg_gain=0.02, protected_slices={"code": 0.01, "x": 0.0}
    )
    assert weaker_holdout_settings(stricter, policy) == ()
    weaker = HoldoutConfig(
        min_query_groups=19,
        min_ndcg_gain=0.005,
        bootstrap_samples=500,
        max_regression_fraction=0.2,
        seed=7,
        k=5,
    )
    assert set(weaker_holdout_settings(weaker, policy)) == {
        "min_query_groups",
        "min_ndcg_gain",
        "bootstrap_samples",
        "max_regression_fraction",
        "seed",
        "k",
        "protected_slices",
    }
    loosened = HoldoutConfig(protected_slices={"code": -0.01})
    assert weaker_holdout_settings(loosened, policy) == ("protected_slices",)
    assert (
        weaker_evaluation_settings(LearningConfig(min_validation_queries=50, passes_per_step=2), policy) == ()
    )
    assert set(weaker_evaluation_settings(LearningConfig(min_ndcg_gain=0, seed=1, ndcg_k=5), policy)) == {
        "min_ndcg_gain",
        "seed",
        "ndcg_k",
    }
