"""Labels and receipts that PRME exported: what fits together, and what is refused."""

from collections.abc import Mapping
from typing import Any

import pytest

from apps.learning.evaluate import EvaluationInputs
from apps.learning.exceptions import ConflictingIdentity, ForeignInput, LearningInputError, UnknownReference
from apps.learning.holdout import evaluate_holdout
from apps.learning.prme_holdout import HoldoutArguments, arm_of, holdout_inputs
from apps.learning.prme_inputs import evaluation_inputs
from apps.learning.schemas import HoldoutConfig, RankingMultipliers
from apps.retrieval.prme import read_label_record, read_receipt
from tests.support.prme import dump, make_receipt, make_record, node_id

FEATURES = ((0.9, 0.8, 0.4, 0.5, 0.6, 0.7), (0.6, 0.5, 0.4, 0.5, 0.6, 0.7))
RECEIPT = make_receipt(FEATURES)


def inputs_of(*receipts: dict[str, Any], records: tuple[bytes, ...] = (), **more: Any) -> EvaluationInputs:
    return evaluation_inputs(
        [read_receipt(dump(receipt)) for receipt in receipts], map(read_label_record, records), **more
    )


def test_repetitions_count_once() -> None:
    record = make_record(RECEIPT, {0: True, 1: False})
    inputs = inputs_of(RECEIPT, RECEIPT, records=(record, record))
    assert len(inputs.receipts) == 1
    assert inputs.labels.feedback_ids == ("00000000-0000-0000-0000-000000000001",)
    assert inputs.labels.label_value.tolist() == [True, False]
    assert inputs.owner == "owner"


@pytest.mark.parametrize(
    ("record", "error"),
    [
        (make_record(RECEIPT, {7: True}), UnknownReference),
        (make_record(RECEIPT, {0: True}, receipt_checksum="0" * 64), ConflictingIdentity),
        (make_record(RECEIPT, {0: True}, request_id=node_id(1)), UnknownReference),
        (make_record(RECEIPT, {0: False}, surface="context"), UnknownReference),
        (make_record(RECEIPT, {0: True}, user_id="another"), ForeignInput),
    ],
)
def test_labels_that_do_not_fit_are_refused(record: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        inputs_of(RECEIPT, records=(record,))


def test_a_reference_only_entry_takes_a_negative_and_no_positive() -> None:
    receipt = make_receipt(FEATURES)
    receipt["candidates"][0] |= {"in_context": True, "representation": "reference", "token_cost": 3}
    assert inputs_of(receipt, records=(make_record(receipt, {0: False}, surface="context"),))
    with pytest.raises(UnknownReference):
        inputs_of(receipt, records=(make_record(receipt, {0: True}, surface="context"),))
    receipt["candidates"][0] |= {"representation": "full", "has_content": True}
    assert inputs_of(receipt, records=(make_record(receipt, {0: True}, surface="context"),))


def test_one_id_for_two_things_is_refused() -> None:
    with pytest.raises(ConflictingIdentity):
        inputs_of(RECEIPT, make_receipt(FEATURES, query="another question"))
    records = (make_record(RECEIPT, {0: True}), make_record(RECEIPT, {0: False}))
    with pytest.raises(ConflictingIdentity):
        inputs_of(RECEIPT, records=records)


def test_one_owner() -> None:
    with pytest.raises(ForeignInput):
        inputs_of(RECEIPT, make_receipt(FEATURES, request=2, owner="another"))
    with pytest.raises(ForeignInput):
        inputs_of(RECEIPT, owner="another")
    with pytest.raises(LearningInputError):
        inputs_of()


def test_a_legacy_receipt_takes_labels_and_has_no_pool() -> None:
    receipt = make_receipt(FEATURES, version=1)
    inputs = inputs_of(receipt, records=(make_record(receipt, {0: True, 1: False}),))
    assert inputs.receipts.formulas == ("none",)
    assert len(inputs.receipts.recorded) == 0
    assert len(inputs.labels) == 1


def executed(request: int, multipliers: Mapping[str, float] | None, **changes: Any) -> dict[str, Any]:
    receipt = make_receipt(FEATURES, version=12, request=request) | changes
    receipt["execution"]["parameters"] = {"ranking_multipliers": multipliers, "max_per_source": None}
    return receipt


def test_unity_and_no_multipliers_are_one_baseline() -> None:
    ones = dict.fromkeys(RankingMultipliers.model_fields, 1.0)
    for baseline in (None, ones):
        report = run_holdout(executed(1, baseline), executed(2, ones | {"lexical": 2.0}))
        assert report.coverage["trials"] == 1
        assert report.base_scoring["current_update_multiplier"] == 1.3


def run_holdout(*receipts: dict[str, Any], **changes: Any) -> Any:
    arguments = HoldoutArguments.model_validate(
        {
            "user_id": "owner",
            "scopes": ("project",),
            "proposal_input_checksum": "2" * 64,
            "memory_artifact_sha256": "3" * 64,
            "candidate_multipliers": {"lexical": 2.0},
            "trials": (
                {
                    "group_id": "g",
                    "baseline_request_id": receipts[0]["request_id"],
                    "candidate_request_id": receipts[1]["request_id"],
                    "relevant_node_ids": (node_id(0),),
                },
            ),
        }
        | changes
    )
    config = HoldoutConfig()
    read = [read_receipt(dump(receipt)) for receipt in receipts]
    return evaluate_holdout(holdout_inputs(read, arguments, config), config=config)


@pytest.mark.parametrize(
    "changes",
    [
        {"reference_time": "2026-11-02T00:00:00Z"},
        {"result_limit": 5},
        {"min_score": 0.1},
        {"retrieval_mode": "explicit"},
        {"time_from": "2026-11-01T00:00:00Z"},
        {"query": "another"},
    ],
)
def test_arms_that_differ_in_the_request_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(LearningInputError):
        run_holdout(executed(1, None), executed(2, {"lexical": 2.0}, **changes))


def test_arms_that_differ_in_a_parameter_or_a_feature_are_refused() -> None:
    for part, value in (("parameters", {"max_per_source": 1}), ("features", {"python": "3.12"})):
        candidate = executed(2, {"lexical": 2.0})
        candidate["execution"][part] |= value
        with pytest.raises(LearningInputError):
            run_holdout(executed(1, None), candidate)


def test_receipts_without_an_execution_are_no_arms() -> None:
    with pytest.raises(LearningInputError):
        arm_of(read_receipt(dump(RECEIPT)))
    wild = executed(3, None)
    wild["execution"]["parameters"]["ranking_multipliers"] = {"lexical": 9}
    with pytest.raises(LearningInputError):
        arm_of(read_receipt(dump(wild)))
