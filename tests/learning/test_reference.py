"""PRME's own reports, recomputed from its files within the tolerances that it documents."""

import json
import random
from typing import Any

import pytest

from apps.learning.evaluate import evaluate
from apps.learning.holdout import evaluate_holdout
from apps.learning.prme_holdout import HoldoutArguments, holdout_inputs
from apps.learning.prme_inputs import evaluation_inputs
from apps.learning.schemas import EvaluationReport, HoldoutReport, LearningConfig
from apps.retrieval.prme import iter_label_records, iter_receipts
from tests.support import judged_data

TOLERANCE = 1e-9
EXACT = ("user_id", "scopes", "surface", "input_checksum", "feedback_ids", "receipt_checksums", "decision")
EVALUATION_NUMBERS = (
    "training_loss_before",
    "training_loss_after",
    "validation_ndcg_gain",
    "validation_pairwise_gain",
    "validation_gain_interval",
)
HOLDOUT_NUMBERS = (
    *(f"{arm}_{metric}" for arm in ("baseline", "candidate") for metric in ("recall", "ndcg", "mrr")),
    "recall_gain",
    "ndcg_gain",
    "mrr_gain",
    "ndcg_gain_interval",
    "regression_fraction",
)


def expected(name: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((judged_data("prme") / name / "report.json").read_bytes())
    return report


def arguments(name: str) -> dict[str, Any]:
    path = judged_data("prme") / name / "inputs.json"
    found: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {}
    return found


def evaluation(name: str, *, shuffle: int | None = None) -> EvaluationReport:
    """The evaluation of a set; shuffled with every third input repeated when a seed is given."""
    folder = judged_data("prme") / name
    receipts = list(iter_receipts(folder / "receipts.jsonl.gz"))
    records = list(iter_label_records(folder / "records.jsonl.gz"))
    if shuffle is not None:
        receipts, records = receipts + receipts[::3], records + records[::3]
        generator = random.Random(shuffle)
        generator.shuffle(receipts)
        generator.shuffle(records)
    given = arguments(name)
    inputs = evaluation_inputs(receipts, records, query_groups=given.get("query_groups"))
    config = LearningConfig.model_validate(given.get("config", {}))
    return evaluate(inputs, scopes=("project",), config=config)


def assert_close(own: dict[str, Any], other: dict[str, Any]) -> None:
    assert own.keys() == other.keys()
    for name, value in other.items():
        assert own[name] == (pytest.approx(value, abs=TOLERANCE) if isinstance(value, float) else value)


def holdout() -> HoldoutReport:
    folder = judged_data("prme") / "holdout"
    given = HoldoutArguments.model_validate_json((folder / "inputs.json").read_bytes())
    inputs = holdout_inputs(iter_receipts(folder / "receipts.jsonl.gz"), given, given.config)
    return evaluate_holdout(inputs, config=given.config)


@pytest.mark.parametrize("name", ["weighted-v2", "weighted-v12"])
def test_evaluation_agrees_with_the_reference(name: str) -> None:
    ours, theirs = evaluation(name).model_dump(mode="json"), expected(name)
    for field in (*EXACT, "coverage", "exclusions", "algorithm"):
        assert ours[field] == theirs[field], field
    assert ours["multipliers"] == pytest.approx(theirs["multipliers"], abs=1e-4)
    for field in EVALUATION_NUMBERS:
        assert ours[field] == pytest.approx(theirs[field], abs=TOLERANCE), field
    assert len(ours["queries"]) == len(theirs["queries"])
    for own, other in zip(ours["queries"], theirs["queries"], strict=True):
        assert_close(own, other)
    assert {name: ours["config"][name] for name in theirs["config"]} == theirs["config"]


def test_holdout_agrees_with_the_reference() -> None:
    ours, theirs = holdout().model_dump(mode="json"), expected("holdout")
    exact = (*EXACT, "coverage", "feature_identity_sha256", "feature_identity", "base_scoring")
    for field in set(exact) - {"feedback_ids"}:
        assert ours[field] == theirs[field], field
    for field in HOLDOUT_NUMBERS:
        assert ours[field] == pytest.approx(theirs[field], abs=TOLERANCE), field
    for own, other in zip(ours["queries"], theirs["queries"], strict=True):
        assert_close(own, other)
    own_trials = [{name: trial[name] for name in theirs["trials"][0]} for trial in ours["trials"]]
    assert own_trials == theirs["trials"]


@pytest.mark.parametrize("seed", [1, 2])
def test_order_and_repetition_do_not_change_a_report_by_a_byte(seed: int) -> None:
    assert evaluation("weighted-v12", shuffle=seed).model_dump_json() == (
        evaluation("weighted-v12").model_dump_json()
    )


def test_the_report_says_how_it_was_made() -> None:
    report = evaluation("weighted-v2")
    assert report.resampling == "python_mersenne"
    assert report.graded_requests == 0
    assert report.power.groups == report.coverage["validation_queries"]
    assert report.power.detectable_gain is not None
    assert report.power.detectable_gain > 0
    assert report.limitations
