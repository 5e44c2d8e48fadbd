"""Evaluations: exclusions, the minimum of groups, what is found, and what is shown."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from apps.learning.evaluate import evaluate
from apps.learning.exceptions import LearningInputError, NotReproducible, TooLarge
from apps.learning.identity import query_group_id
from apps.learning.schemas import EvaluationReport, LearningConfig, RankingMultipliers
from apps.learning.split import is_validation
from tests.support.learning import Request, lexical_requests, make_inputs

SCOPES = ("project",)
PAIR = ((0.9, 0.1, 0.5, 0.5, 0.5, 0.5), (0.1, 0.9, 0.5, 0.5, 0.5, 0.5))


def run(requests: Sequence[Request], **settings: object) -> EvaluationReport:
    return evaluate(make_inputs(requests), scopes=SCOPES, config=LearningConfig.model_validate(settings))


def by_split(requests: Sequence[Request]) -> tuple[list[Request], list[Request]]:
    """Training and validation requests."""
    sides: tuple[list[Request], list[Request]] = ([], [])
    for request in requests:
        sides[is_validation(42, query_group_id(request.query), 0.3)].append(request)
    return sides


def test_a_preference_that_exists_is_found() -> None:
    report = run(lexical_requests(160))
    assert report.decision == "improved_on_observed_candidates"
    assert report.multipliers.lexical > 2
    assert report.training_loss_after is not None
    assert report.training_loss_before is not None
    assert report.training_loss_after < report.training_loss_before
    assert report.validation_gain_interval is not None
    assert report.validation_gain_interval[0] > 0
    assert report.resampling == "pcg64_multiply_shift"


def test_noise_is_no_improvement_and_keeps_its_parameters() -> None:
    requests = lexical_requests(120)
    for number, request in enumerate(requests):
        request.labels = {index: [(index + number) % 2 == 0] for index in range(6)}
    report = run(requests)
    assert report.decision == "no_improvement"
    assert report.queries
    assert report.validation_ndcg_gain is not None


@pytest.mark.parametrize(("training", "validation"), [(40, 19), (19, 40)])
def test_too_few_groups_on_either_side_fit_nothing(training: int, validation: int) -> None:
    trains, validates = by_split(lexical_requests(260))
    report = run([*trains[:training], *validates[:validation]])
    assert report.decision == "insufficient_data"
    assert report.multipliers == RankingMultipliers()
    assert report.training_loss_before is None
    assert report.validation_gain_interval is None
    assert report.queries == ()
    assert report.coverage["training_queries"] == training
    assert report.coverage["validation_queries"] == validation
    assert report.label_plan.training_queries_lacking == max(0, 20 - training)
    assert report.label_plan.validation_queries_lacking == max(0, 20 - validation)


def test_twenty_groups_on_both_sides_are_fitted() -> None:
    trains, validates = by_split(lexical_requests(120))
    report = run([*trains[:20], *validates[:20]])
    assert report.decision != "insufficient_data"
    assert report.training_loss_before is not None
    assert report.multipliers != RankingMultipliers()
    assert len(report.queries) == 40


def test_adding_groups_moves_none() -> None:
    few, many = run(lexical_requests(100)), run([*lexical_requests(100), *lexical_requests(180)[100:]])
    before = {query.group_id: query.split for query in few.queries}
    after = {query.group_id: query.split for query in many.queries}
    assert before.items() <= after.items()
    assert len(after) == 180


def test_one_sided_conflicting_and_unjudged_requests_are_counted_and_planned() -> None:
    requests = [
        Request(PAIR, {0: [True], 1: [True]}, query="only relevant"),
        Request(PAIR, {0: [False]}, query="only not relevant"),
        Request(PAIR, {0: [True, False], 1: [True, False]}, query="conflicting"),
        Request(PAIR, {0: [True, True], 1: [False]}, query="a pair, labelled twice"),
        Request(PAIR, {}, query="unjudged"),
    ]
    report = run(requests)
    assert report.exclusions == {"conflicting_candidate_labels": 2, "requests_without_explicit_pairs": 3}
    assert report.coverage["requests_with_pairs"] == 1
    assert report.coverage["explicit_pairs"] == 1
    assert report.coverage["feedback_records"] == 6
    reasons = {item.request_id: item.reason for item in report.label_plan.requests}
    assert reasons == {
        "r0000": "only_relevant",
        "r0001": "only_not_relevant",
        "r0002": "conflicting_labels",
        "r0004": "unjudged",
    }


def test_the_plan_puts_the_lacking_side_first() -> None:
    trains, validates = by_split(lexical_requests(200))
    missing = [*trains[30:33], *validates[5:8]]
    for request in missing:
        request.labels = {}
    report = run([*trains[:33], *validates[:8]])
    splits = [item.split for item in report.label_plan.requests]
    assert splits == ["validation"] * 3 + ["train"] * 3


def test_each_exclusion_counts_under_the_first_that_applies() -> None:
    both = {0: [True], 1: [False]}
    requests = [
        Request(PAIR, both, surface="context", scopes=None, formula="none"),
        Request(PAIR, both, scopes=None, formula="none"),
        Request(PAIR, both, scopes=("personal", "project")),
        Request(PAIR, both, formula="none", contract="native:0"),
        Request(PAIR, both, formula="rank_fusion", contract="native:0"),
        Request(PAIR, both, contract="native:0"),
        Request(PAIR, both),
    ]
    report = run(requests)
    assert report.exclusions == {
        "other_surface_records": 1,
        "other_scope_records": 2,
        "legacy_receipt_records": 1,
        "rank_fusion_receipt_records": 1,
        "other_contract_records": 1,
        "conflicting_candidate_labels": 0,
    }
    assert report.coverage == {
        "feedback_records": 7,
        "requests_with_pairs": 1,
        "training_queries": 1 - is_validation(42, query_group_id("query 6"), 0.3),
        "validation_queries": int(is_validation(42, query_group_id("query 6"), 0.3)),
        "explicit_pairs": 1,
    }


def test_unfiltered_scopes_equal_only_unfiltered() -> None:
    both = {0: [True], 1: [False]}
    inputs = make_inputs([Request(PAIR, both, scopes=None), Request(PAIR, both, scopes=())])
    report = evaluate(inputs, scopes=None)
    assert report.coverage["requests_with_pairs"] == 1
    assert report.exclusions["other_scope_records"] == 1


def test_a_score_that_is_not_reproduced_is_refused() -> None:
    inputs = make_inputs([Request(PAIR, {0: [True], 1: [False]})])
    inputs.receipts.recorded[1] += 1e-12
    with pytest.raises(NotReproducible):
        evaluate(inputs, scopes=SCOPES)


def test_more_than_the_configuration_allows_is_refused() -> None:
    requests = lexical_requests(3)
    with pytest.raises(TooLarge):
        run(requests, max_records=2)
    with pytest.raises(TooLarge):
        run(requests, max_pairs_per_request=8)
    assert run(requests, max_records=3, max_pairs_per_request=9)


def test_grades_are_used_where_a_request_has_them_all_and_it_is_said() -> None:
    trains, validates = by_split(lexical_requests(200))
    requests = [*trains[:30], *validates[:25]]
    for request in requests[:10]:
        request.grades = {index: 3 if values[0] else 0 for index, values in request.labels.items()}
    requests[10].grades = {0: 4}
    report = run(requests)
    assert report.graded_requests == 10
    graded = {query.group_id: query for query in report.queries}
    binary = {
        query.group_id: query
        for query in run(by_split(lexical_requests(200))[0][:30] + validates[:25]).queries
    }
    # One common grade scales gain and ideal alike.
    for group, query in graded.items():
        assert query.baseline_judged_ndcg == pytest.approx(binary[group].baseline_judged_ndcg)


def test_named_groups_join_paraphrases() -> None:
    requests = lexical_requests(6)
    inputs = make_inputs(requests, query_groups={"r0000": "name", "r0001": "name"})
    coverage = evaluate(inputs, scopes=SCOPES).coverage
    assert coverage["training_queries"] + coverage["validation_queries"] == 5


def test_the_manifest_covers_configuration_scopes_and_data() -> None:
    requests = lexical_requests(6)
    base = run(requests).manifest_sha256
    assert run(requests).manifest_sha256 == base
    assert run(requests, ndcg_k=9).manifest_sha256 != base
    assert run(requests[:5]).manifest_sha256 != base
    assert evaluate(make_inputs(requests), scopes=None).manifest_sha256 != base
    assert evaluate(make_inputs(requests), scopes=SCOPES, surface="context").manifest_sha256 != base


def test_the_manifest_covers_code_and_scorer_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = make_inputs(lexical_requests(6))
    base = evaluate(inputs, scopes=SCOPES).manifest_sha256
    other = replace(inputs, scorer_contract="native:2")
    assert evaluate(other, scopes=SCOPES).manifest_sha256 != base
    named = replace(inputs, query_groups={"r0000": "name"})
    assert evaluate(named, scopes=SCOPES).manifest_sha256 != base
    for constant, value in (("IMPLEMENTATION_VERSION", 2), ("ALGORITHM", "another")):
        with monkeypatch.context() as patched:
            patched.setattr(f"apps.learning.evaluate.{constant}", value)
            assert evaluate(inputs, scopes=SCOPES).manifest_sha256 != base
    assert evaluate(inputs, scopes=SCOPES).manifest_sha256 == base


def test_reuse_of_validation_groups_is_shown() -> None:
    inputs = make_inputs(lexical_requests(100))
    report = evaluate(inputs, scopes=SCOPES, count_earlier=lambda checksum: 3)
    assert report.earlier_evaluations_on_these_groups == 3
    for number, validates in ((100, False), (101, True)):
        assert is_validation(42, query_group_id(f"question {number}"), 0.3) == validates
        other = evaluate(make_inputs(lexical_requests(number + 1)), scopes=SCOPES)
        assert (other.validation_groups_sha256 != report.validation_groups_sha256) == validates


def test_no_labels_at_all_is_insufficient() -> None:
    report = run([Request(PAIR, {})])
    assert report.decision == "insufficient_data"
    assert report.exclusions == {}


@pytest.mark.parametrize(
    "settings",
    [
        {"validation_fraction": 0},
        {"validation_fraction": 1},
        {"min_training_queries": 1},
        {"min_validation_queries": 1},
        {"regularization": 0},
        {"regularization": math.inf},
        {"margin_scale": 0},
        {"margin_scale": 100.5},
        {"margin_scale": math.nan},
        {"passes": 0},
        {"passes_per_step": 21},
        {"ndcg_k": 0},
        {"ndcg_k": 1001},
        {"bootstrap_samples": 99},
        {"bootstrap_samples": 10_001},
        {"min_ndcg_gain": -0.1},
        {"min_ndcg_gain": 1.1},
        {"max_pairs_per_request": 0},
        {"max_records": 1_000_001},
        {"seed": "42"},
        {"seed": 1.5},
        {"seed": True},
        {"surprise": 1},
        {"passes": 3, "passes_per_step": 3},
    ],
)
def test_settings_out_of_bounds_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        LearningConfig.model_validate(settings)


def test_both_names_of_the_passes_are_known() -> None:
    assert LearningConfig.model_validate({"passes": 3}).passes_per_step == 3
    assert LearningConfig.model_validate({"passes_per_step": 3}).passes_per_step == 3
    assert LearningConfig().model_dump()["passes_per_step"] == 4


def test_columns_that_do_not_fit_together_are_refused() -> None:
    inputs = make_inputs(lexical_requests(2))
    receipts = inputs.receipts
    values = {name: getattr(receipts, name) for name in type(receipts).__slots__}
    with pytest.raises(LearningInputError):
        type(receipts)(**(values | {"checksums": receipts.checksums[:1]}))
    with pytest.raises(LearningInputError):
        type(receipts)(**(values | {"recorded": receipts.recorded[:-1]}))
    with pytest.raises(LearningInputError):
        type(receipts)(**(values | {"request_ids": receipts.request_ids[::-1]}))
