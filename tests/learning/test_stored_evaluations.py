"""Evaluations over stored receipts and labels: what counts, what is left out, and that they can be computed again."""

import json
from uuid import UUID, uuid4

import pytest
from django.db import OperationalError, connection, transaction

from apps.core.db.sessions import principal_session
from apps.feedback.schemas import JudgmentRequest
from apps.feedback.services.judgments import record_judgment
from apps.learning.exceptions import NotReproducible
from apps.learning.models import EvaluatedQuery, EvaluationResult
from apps.learning.policy import GateInEffect
from apps.learning.schemas import GatePolicy, RankingMultipliers
from apps.learning.selectors.evaluations import evaluation_of
from apps.learning.services import evaluations as services
from apps.learning.services.evaluations import recompute_evaluation, run_evaluation
from apps.traces.services.erase import erase_trace
from tests.support import collection
from tests.support.api import Api
from tests.support.factories import make_world

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

SMALL = {"min_training_queries": 2, "min_validation_queries": 2}


@pytest.fixture
def me():
    return make_world().principal


def evaluation(me, evaluation_id):
    with principal_session(me):
        return evaluation_of(evaluation_id)


def report(me, evaluation_id) -> dict:
    with principal_session(me):
        return json.loads(EvaluationResult.objects.get(evaluation_id=evaluation_id).report)


def excluded(found: dict) -> dict[str, int]:
    return {reason: count for reason, count in found["exclusions"].items() if count}


def undone(work):
    """What `work` gives, with the database as it was before."""
    place = transaction.savepoint()
    given = work()
    transaction.savepoint_rollback(place)
    return given


def recompute(me, evaluation_id):
    with principal_session(me):
        return recompute_evaluation(evaluation_of(evaluation_id))


def small(me, **more) -> tuple[collection.Collection, list[dict]]:
    """A collection of eight judged questions, searched and not judged."""
    made = collection.build(me, training=4, validation=4, unseen=0, **more)
    return made, collection.search_all(made)


def relabel(me, answer, labels, **fields) -> UUID:
    with principal_session(me):
        return collection.judge(answer, labels, **fields)


def withdraw(me, answer, feedback_id: UUID) -> None:
    submission = JudgmentRequest(feedback_id=uuid4(), withdraws=feedback_id)
    with principal_session(me):
        record_judgment(receipt_id=UUID(answer["retrieval_receipt_id"]), submission=submission)


def test_nineteen_validation_groups_are_too_few_and_twenty_are_fitted(me) -> None:
    made = collection.build(me, training=20, validation=20, unseen=0)
    answers = collection.search_all(made)
    feedback = collection.judge_all(made, answers)
    first = collection.evaluate(me)
    assert evaluation(me, first).result.decision == "improved_on_observed_candidates"
    validation = next(query.receipt_ids[0] for query in _queries(me, first) if query.split == "validation")
    place = next(i for i, a in enumerate(answers) if a["retrieval_receipt_id"] == str(validation))
    withdraw(me, answers[place], feedback[place])
    second = collection.evaluate(me)
    result = evaluation(me, second).result
    assert (result.decision, result.validation_groups) == ("insufficient_data", 19)
    assert result.multipliers == RankingMultipliers().values()
    plan = report(me, second)["label_plan"]
    assert plan["validation_queries_lacking"] == 1
    assert plan["training_queries_lacking"] == 0


def _queries(me, evaluation_id) -> list[EvaluatedQuery]:
    with principal_session(me):
        return list(EvaluatedQuery.objects.filter(evaluation_id=evaluation_id))


def test_a_request_with_only_positives_is_left_out_and_counted(me) -> None:
    made, answers = small(me)
    collection.judge_all(made, answers[1:], made.judged[1:])
    labels = collection.labels_of(made.judged[0], answers[0])
    relabel(me, answers[0], {node: True for node, relevant in labels.items() if relevant})
    found = report(me, collection.evaluate(me, config=SMALL))
    assert excluded(found) == {"requests_without_explicit_pairs": 1}
    assert found["coverage"]["requests_with_pairs"] == 7


def test_what_was_withdrawn_is_in_no_pair_and_no_count_and_what_was_superseded_counts_once(me) -> None:
    made, answers = small(me)
    feedback = collection.judge_all(made, answers)
    withdraw(me, answers[0], feedback[0])
    wrong = collection.labels_of(made.judged[1], answers[1])
    flipped = {node: not relevant for node, relevant in wrong.items()}
    relabel(me, answers[1], flipped, supersedes=feedback[1])
    found = report(me, collection.evaluate(me, config=SMALL))
    assert found["coverage"]["feedback_records"] == 7
    assert found["coverage"]["requests_with_pairs"] == 7
    assert excluded(found) == {}
    assert answers[0]["retrieval_receipt_id"] not in found["receipt_checksums"]


def test_annotators_who_disagree_conflict_by_default_and_are_outvoted_where_the_gate_says_so(
    me, monkeypatch
) -> None:
    made, answers = small(me)
    collection.judge_all(made, answers)
    labels = collection.labels_of(made.judged[0], answers[0])
    flipped = {node: not relevant for node, relevant in labels.items()}
    relabel(me, answers[0], flipped, annotator="second")
    conflict = report(me, collection.evaluate(me, config=SMALL))
    assert excluded(conflict) == {
        "conflicting_candidate_labels": len(labels),
        "requests_without_explicit_pairs": 1,
    }
    relabel(me, answers[0], labels, annotator="third")
    monkeypatch.setattr(services, "gate_of", _gate_with(annotators="majority"))
    majority = report(me, collection.evaluate(me, config=SMALL))
    assert excluded(majority) == {"outvoted_labels": len(labels)}
    assert majority["coverage"]["requests_with_pairs"] == 8
    assert majority["input_checksum"] != conflict["input_checksum"]


def _gate_with(**members):
    return lambda policy_id: GateInEffect(policy_id, 1, GatePolicy(**members))


def test_order_of_admission_retries_and_repetitions_change_no_byte(me) -> None:
    made, answers = small(me)
    submissions = [
        JudgmentRequest(
            feedback_id=uuid4(),
            labels=collection.labels_of(question, answer),
            surface="results",
            method="explicit_user",
        )
        for question, answer in zip(made.judged, answers, strict=True)
    ]

    def text_in(order) -> str:
        with principal_session(me):
            for index in order:
                receipt = UUID(answers[index]["retrieval_receipt_id"])
                record_judgment(receipt_id=receipt, submission=submissions[index])
        evaluation_id = collection.evaluate(me, config=SMALL)
        with principal_session(me):
            return EvaluationResult.objects.get(evaluation_id=evaluation_id).report

    texts = [undone(lambda o=order: text_in(o)) for order in (range(8), [*reversed(range(8)), 3, 3])]
    assert texts[0] == texts[1]


def test_a_worker_that_lost_the_database_computes_the_same_again(me, monkeypatch) -> None:
    made, answers = small(me)
    collection.judge_all(made, answers)
    store = services._store
    monkeypatch.setattr(services, "_store", _away)
    with pytest.raises(OperationalError):
        collection.evaluate(me, config=SMALL)
    with principal_session(me):
        open_one = evaluation_of(services.Evaluation.objects.get().pk)
    assert (open_one.status, open_one.attempts) == ("running", 1)
    relabel(me, answers[0], collection.labels_of(made.judged[0], answers[0]))  # after the cut
    monkeypatch.setattr(services, "_store", store)
    again = {"principal_id": me.principal_id, "evaluation_id": open_one.pk}
    assert run_evaluation(**again) == {"succeeded": 1}
    assert run_evaluation(**again) == {}
    assert recompute(me, open_one.pk).coverage["feedback_records"] == 8


def _away(*_) -> None:
    raise OperationalError


def test_reuse_of_validation_groups_is_shown_and_changes_nothing_else(me) -> None:
    made, answers = small(me)
    collection.judge_all(made, answers)
    first, second = (report(me, collection.evaluate(me, config=SMALL)) for _ in range(2))
    assert second.pop("earlier_evaluations_on_these_groups") == 1
    assert first.pop("earlier_evaluations_on_these_groups") == 0
    assert first == second


def test_what_fitted_nothing_is_no_reuse_of_validation_groups(me) -> None:
    collection.judge_all(*small(me))
    lacking = report(me, collection.evaluate(me, config=SMALL | {"min_training_queries": 1000}))
    fitted = report(me, collection.evaluate(me, config=SMALL))
    assert lacking["validation_groups_sha256"] == fitted["validation_groups_sha256"]
    assert (lacking["decision"], fitted["earlier_evaluations_on_these_groups"]) == ("insufficient_data", 0)
    again = report(me, collection.evaluate(me, config=SMALL))
    assert again["earlier_evaluations_on_these_groups"] == 1


def test_less_than_the_gate_asks_is_exploratory_and_more_is_not(me) -> None:
    weak = evaluation(me, collection.evaluate(me, config={"min_ndcg_gain": 0.0, "seed": 7}))
    assert weak.exploratory
    assert weak.weaker_settings == ["min_ndcg_gain", "seed"]
    strict = evaluation(me, collection.evaluate(me, config={"min_validation_queries": 40}))
    assert not strict.exploratory
    assert strict.config["min_validation_queries"] == 40
    assert strict.config["min_training_queries"] == 20


def test_without_any_label_there_is_nothing_to_fit(me) -> None:
    found = evaluation(me, collection.evaluate(me))
    assert (found.status, found.result.decision) == ("succeeded", "insufficient_data")


def test_labels_of_later_are_not_in_it_and_it_is_computed_again_without_them(me) -> None:
    made, answers = small(me)
    collection.judge_all(made, answers[:7], made.judged[:7])
    evaluation_id = collection.evaluate(me, config=SMALL)
    collection.judge_all(made, answers[7:], made.judged[7:])
    assert recompute(me, evaluation_id).coverage["feedback_records"] == 7


def test_it_no_longer_reproduces_when_a_label_was_withdrawn_or_decided_otherwise(me) -> None:
    made, answers = small(me)
    feedback = collection.judge_all(made, answers)
    evaluation_id = collection.evaluate(me, config=SMALL)
    said = collection.labels_of(made.judged[0], answers[0])
    relabel(me, answers[0], said)
    recompute(me, evaluation_id)  # the same said again

    def otherwise() -> None:
        labels = collection.labels_of(made.judged[1], answers[1])
        relabel(me, answers[1], {node: not relevant for node, relevant in labels.items()})
        with pytest.raises(NotReproducible):
            recompute(me, evaluation_id)

    undone(otherwise)
    recompute(me, evaluation_id)
    withdraw(me, answers[1], feedback[1])
    with pytest.raises(NotReproducible):
        recompute(me, evaluation_id)


def test_ndcg_is_graded_for_requests_whose_labels_all_have_grades(me) -> None:
    made, answers = small(me)
    with principal_session(me):
        for number, (question, answer) in enumerate(zip(made.judged, answers, strict=True)):
            labels = collection.labels_of(question, answer)
            grades = {node: 4 if relevant else 0 for node, relevant in labels.items()}
            if number == 0:
                grades.popitem()
            collection.judge(answer, labels, grade=grades)
    found = report(me, collection.evaluate(me, config=SMALL))
    assert found["graded_requests"] == len(answers) - 1


def test_it_no_longer_reproduces_when_a_trace_was_erased(me) -> None:
    made, answers = small(me)
    collection.judge_all(made, answers)
    evaluation_id = collection.evaluate(me, config=SMALL)
    api = Api(me, "learning")
    for gone in (0, 1, 2):
        shown = api.get(f"/v1/learning/evaluations/{evaluation_id}").json()
        assert shown["receipts_gone"] == gone
        if gone:
            with pytest.raises(NotReproducible):
                recompute(me, evaluation_id)
        with principal_session(me):
            erase_trace(trace_id=UUID(answers[gone]["trace_id"]))


def test_other_scopes_and_the_other_surface_are_left_out_and_counted(me) -> None:
    made, answers = small(me)
    collection.judge_all(made, answers)
    scoped = collection.search_all(made, scopes=["default"])
    collection.judge_all(made, scoped)
    found = report(me, collection.evaluate(me, config=SMALL, scopes=["default"]))
    assert excluded(found) == {"other_scope_records": 8}
    assert found["scopes"] == ["default"]
    other = report(me, collection.evaluate(me, config=SMALL, surface="context"))
    assert excluded(other) == {"other_surface_records": 16}


def test_named_paraphrases_are_one_group_and_names_that_do_not_fit_are_refused(me) -> None:
    made, answers = small(me)
    collection.judge_all(made, answers)
    receipts = [answer["retrieval_receipt_id"] for answer in answers]
    together = report(
        me,
        collection.evaluate(me, config=SMALL, query_groups={receipts[0]: "one", receipts[1]: "one"}),
    )
    ids = [query["request_ids"] for query in together["queries"]]
    assert sorted(receipts[:2]) in ids
    assert len(ids) == 7
    unknown = evaluation(me, collection.evaluate(me, query_groups={str(uuid4()): "one"}))
    assert (unknown.status, unknown.failure_code) == ("failed", "unknown_reference")


def test_more_records_than_allowed_fail_the_run_before_receipts_are_read(me) -> None:
    made, answers = small(me)
    collection.judge_all(made, answers)
    found = evaluation(me, collection.evaluate(me, config={"max_records": 7}))
    assert (found.status, found.failure_code) == ("failed", "too_large")
    with principal_session(me):
        assert not EvaluationResult.objects.exists()


def test_the_number_of_statements_does_not_grow_with_the_labels(me, django_assert_max_num_queries) -> None:
    made, answers = small(me)
    collection.judge_all(made, answers[:4], made.judged[:4])
    counts = []
    for rest in (slice(4, 4), slice(4, 8)):
        collection.judge_all(made, answers[rest], made.judged[rest])
        with django_assert_max_num_queries(100) as captured:
            collection.evaluate(me, config=SMALL)
        counts.append(len(captured))
    assert connection.vendor == "postgresql"
    assert counts[0] == counts[1]
