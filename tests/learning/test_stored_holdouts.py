"""Holdouts that the platform runs: both arms over one memory, overlap refused, the gate applied, all of it kept."""

import json
from uuid import UUID

import pytest

from apps.core import clock, policies
from apps.core.db.sessions import principal_session, staff_session
from apps.core.problems import InvalidRequest, StateConflict
from apps.graph.services import PassageItem, write_passages
from apps.learning.exceptions import NoProposal, NotReproducible, UnknownEvaluation
from apps.learning.models import HoldoutPair, HoldoutResult
from apps.learning.requests import HoldoutRequest
from apps.learning.scorer import FEATURES
from apps.learning.selectors.evaluations import evaluation_of
from apps.learning.selectors.holdouts import holdout_of
from apps.learning.services import arms
from apps.learning.services.holdouts import recompute_holdout, start_holdout
from apps.learning.services.watch import Watch
from apps.retrieval.identity import keyed_query_identity
from apps.retrieval.models import Receipt
from apps.retrieval.selectors import stored_receipt
from apps.retrieval.services import hash_key
from tests.support import collection, memory
from tests.support.factories import make_principal, make_staff, make_world

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("quiet")]

FEW = {"min_training_queries": 2, "min_validation_queries": 2}


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def me(world):
    return world.principal


@pytest.fixture
def made(me):
    """Few judged questions, so that the evaluation is exploratory; as many unseen ones as the gate asks for."""
    return collection.judged_collection(me, training=4, validation=4, unseen=20)


@pytest.fixture
def evaluation_id(me, made):
    return collection.evaluate(me, config=FEW)


def holdout(me, holdout_id):
    with principal_session(me):
        return holdout_of(holdout_id)


def spelled(made, index: int = 0) -> collection.Question:
    """A judged question in another case, width and spacing."""
    known = made.judged[index]
    wide = "".join(chr(ord(c) + 0xFEE0) if c.isalpha() else " \u3000" for c in known.text.upper())
    return collection.Question(f"  {wide} ", known.relevant)


def refusal(me, evaluation_id, set_id, **fields) -> str:
    with pytest.raises(StateConflict) as raised:
        collection.hold_out(me, evaluation_id, set_id, **fields)
    return raised.value.shown_code


def receipts(me) -> int:
    with principal_session(me):
        return Receipt.objects.filter(trace=None).count()


def test_both_receipts_of_every_pair_are_kept_and_differ_in_their_multipliers_alone(
    me, made, evaluation_id
) -> None:
    found = holdout(me, collection.hold_out(me, evaluation_id, collection.query_set(made)))
    assert (found.status, found.phase) == ("succeeded", "")
    with principal_session(me):
        pairs = list(HoldoutPair.objects.filter(holdout=found).order_by("position"))
        assert [pair.query_name for pair in pairs] == sorted(q.relevant for q in made.unseen)
        one = pairs[0]
        baseline = stored_receipt(one.baseline_receipt_id).receipt
        candidate = stored_receipt(one.candidate_receipt_id).receipt
    for receipt in (baseline, candidate):
        assert (receipt.request.query.home, receipt.request.query.name) == ("query_set", one.query_name)
    assert (baseline.profile.status, candidate.profile.status) == ("none", "request_override")
    assert baseline.request == candidate.request
    assert baseline.corpus == candidate.corpus
    assert set(baseline.weights[0].multipliers) == {1.0}
    assert list(candidate.weights[0].multipliers) == found.candidate_multipliers
    assert found.result.memory_artifact_sha256 == baseline.corpus.digest


def test_an_exploratory_evaluation_or_a_weaker_gate_makes_it_exploratory(me, made, evaluation_id) -> None:
    set_id = collection.query_set(made)
    of_exploratory = holdout(me, collection.hold_out(me, evaluation_id, set_id))
    assert (of_exploratory.exploratory, of_exploratory.weaker_settings) == (True, [])
    assert of_exploratory.result.decision == "improved_full_retrieval"
    weaker = {"min_ndcg_gain": 0.0, "max_regression_fraction": 0.5}
    weak = holdout(me, collection.hold_out(me, evaluation_id, set_id, config=weaker))
    assert weak.weaker_settings == ["min_ndcg_gain", "max_regression_fraction"]


@pytest.mark.parametrize("how", ["query", "group", "spelling"])
def test_overlap_with_the_evaluation_is_refused_before_anything_runs(me, made, how) -> None:
    names = {"query_groups": {}}
    if how == "group":
        with principal_session(me):
            first = Receipt.objects.order_by("recorded_at").first()
        names = {"query_groups": {str(first.pk): "paraphrases"}}
    evaluation_id = collection.evaluate(me, config=FEW, **names)
    if how == "group":
        set_id = collection.query_set(made, made.unseen[:1], group="paraphrases")
    else:
        question = made.judged[0] if how == "query" else spelled(made)
        set_id = collection.query_set(made, [*made.unseen[:2], question])
    assert refusal(me, evaluation_id, set_id) == "overlap"


def test_a_query_under_a_name_of_its_own_overlaps_all_the_same(me, made) -> None:
    with principal_session(me):
        named = {str(receipt.pk): "named" for receipt in Receipt.objects.all()[:1]}
        identity = Receipt.objects.get(pk=next(iter(named))).query_identity
    evaluation_id = collection.evaluate(me, config=FEW, query_groups=named)
    with principal_session(me):
        key = hash_key()
    question = next(q for q in made.judged if keyed_query_identity(q.text, key) == identity)
    assert refusal(me, evaluation_id, collection.query_set(made, [question])) == "overlap"


def test_a_memory_that_changes_between_the_arms_leaves_nothing(me, made, evaluation_id, monkeypatch) -> None:
    answered = arms._answered
    wrote = []

    def and_somebody_writes(asking, query, embedding, multipliers):
        if not wrote:
            wrote.append(Watch(None, me.principal_id, UUID(int=0)).apart(lambda: _write()))
        return answered(asking, query, embedding, multipliers)

    monkeypatch.setattr(arms, "_answered", and_somebody_writes)
    found = holdout(me, collection.hold_out(me, evaluation_id, collection.query_set(made)))
    assert wrote
    assert (found.status, found.failure_code) == ("failed", "corpus_changed")
    assert receipts(me) == 0
    with principal_session(me):
        assert not HoldoutPair.objects.exists()
        assert not HoldoutResult.objects.exists()


def _write() -> bool:
    write_passages(items=[PassageItem(identity="new", text="something new")])
    return True


def test_both_arms_read_one_state_whatever_is_written_meanwhile(me, made, evaluation_id, monkeypatch) -> None:
    """The first arm and the last see the same rows; the change is noticed at the end."""
    seen = []
    answered = arms._answered

    def noted(asking, query, embedding, multipliers):
        arm = answered(asking, query, embedding, multipliers)
        if not seen:
            Watch(None, me.principal_id, UUID(int=0)).apart(lambda: _write())
        seen.append(json.loads(arm.receipt.document)["corpus"]["digest"])
        return arm

    monkeypatch.setattr(arms, "_answered", noted)
    found = holdout(me, collection.hold_out(me, evaluation_id, collection.query_set(made)))
    assert len(seen) == 40
    assert len(set(seen)) == 1
    assert found.failure_code == "corpus_changed"


def test_a_channel_that_fails_in_an_arm_fails_the_holdout(me, made, evaluation_id, monkeypatch) -> None:
    monkeypatch.setattr("apps.retrieval.candidates.lexical.statement", lambda *_: ("SELECT nothing", {}))
    found = holdout(me, collection.hold_out(me, evaluation_id, collection.query_set(made)))
    assert (found.status, found.failure_code) == ("failed", "retrieval_incomplete")


def contrary(made, count: int, total: int, **fields) -> UUID:
    """A query set in which so many of the questions are answered by the stale document instead; `fields` are of
    these."""
    questions = [
        collection.Question(q.text, q.relevant.replace("fresh", "stale") if i < count else q.relevant)
        for i, q in enumerate(made.unseen[:total])
    ]
    return collection.query_set(
        made, questions, each=lambda question: fields if question.relevant.startswith("stale") else {}
    )


def test_twenty_eight_per_cent_of_regressed_groups_refuse_a_positive_mean(me) -> None:
    made = collection.judged_collection(me, training=4, validation=4, unseen=25)
    found = holdout(me, collection.hold_out(me, collection.evaluate(me, config=FEW), contrary(made, 7, 25)))
    assert found.result.ndcg_gain > 0.05
    assert found.result.regression_fraction == 0.28
    assert found.result.decision == "no_improvement"
    assert "regression_fraction" in found.result.failed_gates


def test_a_protected_slice_that_loses_refuses_what_gains_over_all(world, me) -> None:
    made = collection.judged_collection(me, training=4, validation=4, unseen=25)
    evaluation_id = collection.evaluate(me, config=FEW)
    publish_gate(world, protected_slices={"contrary": -0.01})
    set_id = contrary(made, 2, 25, slice="contrary")
    found = holdout(me, collection.hold_out(me, evaluation_id, set_id))
    assert (found.result.decision, found.result.failed_gates) == ("no_improvement", ["protected_slice"])
    (lost,) = json.loads(found.result.summary)["slices"]
    assert (lost["name"], lost["query_groups"], lost["holds"]) == ("contrary", 2, False)
    # A caller who protects it less, or not at all, explores; one who protects more does not weaken the gate.
    for own, weaker in (({}, True), ({"contrary": -0.02}, True), ({"contrary": 0.0}, False)):
        run = holdout(me, collection.hold_out(me, evaluation_id, set_id, config={"protected_slices": own}))
        assert (run.weaker_settings == ["protected_slices"]) is weaker, own
    unmeasured = holdout(me, collection.hold_out(me, evaluation_id, collection.query_set(made)))
    assert unmeasured.result.decision == "insufficient_data"
    assert "protected_slice_unmeasured" in unmeasured.result.failed_gates


def publish_gate(world, **holdout_settings) -> None:
    with staff_session(make_staff(world.workspace, "manage_profiles", "view_traces")):
        known = policies.followed(world.workspace.pk, "gate")
        policies.publish_policy(
            workspace_id=world.workspace.pk,
            kind="gate",
            document=known.document | {"holdout": known.document["holdout"] | holdout_settings},
            if_match=known.hash,
            reason="a slice to protect",
        )


def test_nineteen_groups_decide_nothing(me, made, evaluation_id) -> None:
    set_id = collection.query_set(made, made.unseen[:19])
    found = holdout(me, collection.hold_out(me, evaluation_id, set_id))
    assert (found.result.decision, found.result.interval_low) == ("insufficient_data", None)


def test_a_document_in_parts_counts_once_at_its_best_row(me, made, evaluation_id) -> None:
    question = made.unseen[0]
    parts = [
        PassageItem(identity="long", part=part, text=f"{question.text} part {part}", repo=collection.REPO)
        for part in range(3)
    ]
    memory.store(me, *parts)
    set_id = collection.query_set(made, [collection.Question(question.text, "long")])
    found = holdout(me, collection.hold_out(me, evaluation_id, set_id))
    assert (found.status, found.failure_code) == ("succeeded", "")
    with principal_session(me):
        pair = HoldoutPair.objects.get(holdout=found)
    assert (pair.baseline_recall, pair.baseline_ndcg, pair.baseline_mrr) == (1.0, 1.0, 1.0)


def test_it_no_longer_reproduces_without_a_receipt_or_with_other_documents(
    me, made, evaluation_id, owner_connection
) -> None:
    holdout_id = collection.hold_out(me, evaluation_id, collection.query_set(made))
    with principal_session(me):
        assert recompute_holdout(holdout_of(holdout_id)).decision == "improved_full_retrieval"
    owner_connection.execute(
        "UPDATE learning_holdout_pair SET candidate_documents = baseline_documents WHERE position = 0"
    )
    with principal_session(me), pytest.raises(NotReproducible):
        recompute_holdout(holdout_of(holdout_id))
    owner_connection.execute(
        "DELETE FROM retrieval_receipt WHERE id = (SELECT baseline_receipt_id FROM learning_holdout_pair "
        "WHERE position = 1)"
    )
    with principal_session(me), pytest.raises(NotReproducible, match="gone"):
        recompute_holdout(holdout_of(holdout_id))


def test_pairs_of_the_caller_are_judged_alike_and_exploratory_for_good(me, made, evaluation_id) -> None:
    trials = pairs_of(me, made, evaluation_id, made.unseen[:2])
    found = holdout(me, collection.hold_out(me, evaluation_id, None, trials=trials))
    assert (found.status, found.failure_code) == ("succeeded", "")
    assert found.exploratory
    assert found.result.ndcg_gain > 0.3
    with principal_session(me):
        assert recompute_holdout(holdout_of(found.pk)).exploratory
    repeated = holdout(me, collection.hold_out(me, evaluation_id, None, trials=[trials[0], trials[0]]))
    assert (repeated.status, repeated.failure_code) == ("failed", "conflicting_identity")


def test_pairs_that_are_in_the_evaluation_are_refused(me, made) -> None:
    evaluation_id = collection.evaluate(me, config=FEW)
    trials = pairs_of(me, made, evaluation_id, made.judged[:1])
    found = holdout(me, collection.hold_out(me, evaluation_id, None, trials=trials))
    assert (found.status, found.failure_code) == ("failed", "overlap")
    unknown = [trials[0] | {"baseline_request_id": str(UUID(int=7))}]
    found = holdout(me, collection.hold_out(me, evaluation_id, None, trials=unknown))
    assert (found.status, found.failure_code) == ("failed", "unknown_reference")


def pairs_of(me, made, evaluation_id, questions) -> list[dict]:
    """Trials out of searches that the caller made itself, under both arms at one time."""
    with principal_session(me):
        values = evaluation_of(evaluation_id).result.multipliers
    multipliers = dict(zip(FEATURES, values, strict=True))
    at = clock.now()
    before = collection.search_all(made, questions, reference_time=at)
    after = collection.search_all(made, questions, reference_time=at, ranking_multipliers=multipliers)
    return [
        {
            "group_id": f"group {number}",
            "baseline_request_id": first["retrieval_receipt_id"],
            "candidate_request_id": second["retrieval_receipt_id"],
            "relevant_node_ids": [
                node for node, relevant in collection.labels_of(question, first).items() if relevant
            ],
        }
        for number, (question, first, second) in enumerate(zip(questions, before, after, strict=True))
    ]


def test_what_cannot_be_asked_for_is_refused_at_once(world, me, made, evaluation_id) -> None:
    set_id = collection.query_set(made, made.unseen[:2])
    other = make_principal(world.workspace)
    request = HoldoutRequest(evaluation_id=evaluation_id, query_set_id=set_id)
    with principal_session(other), pytest.raises(UnknownEvaluation):
        start_holdout(idempotency_key="k", request=request)
    nothing_fitted = collection.evaluate(me)
    with pytest.raises(NoProposal):
        collection.hold_out(me, nothing_fitted, set_id)
    for fields in ({"config": {"k": 51}}, {"config": {"k": 20}, "limit": 10}):
        with pytest.raises(InvalidRequest):
            collection.hold_out(me, evaluation_id, set_id, **fields)
