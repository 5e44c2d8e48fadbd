"""What makes a profile: stored evidence that reproduces, under the gate in effect, and nothing that is sent."""

from datetime import timedelta
from io import StringIO
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import ProgrammingError, connection, transaction

from apps.accounts.models import Principal
from apps.core import clock
from apps.core.db.sessions import principal_session, staff_session
from apps.core.policies import current_policy, followed, publish_policy
from apps.core.problems import InvalidRequest, Problem
from apps.feedback.schemas import JudgmentRequest
from apps.feedback.services.judgments import record_judgment
from apps.learning.exceptions import (
    EvidenceNotReproducible,
    NotPromotable,
    UnknownEvaluation,
    UnknownHoldout,
    UnknownProfile,
    WrongBaseline,
)
from apps.learning.models import Evaluation, EvaluationResult, Holdout, RankingProfile
from apps.learning.services import evidence as evidence_service
from apps.learning.services import staff
from apps.learning.services.profiles import create_profile
from apps.traces.services.erase import erase_trace
from tests.support import collection
from tests.support.api import Api, code_of
from tests.support.factories import make_principal, make_staff, make_superuser, make_world
from tests.support.library import ask
from tests.support.profiles import activate, deactivate, make_profile

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def evidence(django_db_setup, django_db_blocker):
    """One evaluated and confirmed collection for all tests of this module, which roll back what they do to it."""
    from tests.support.clean import truncate_all

    with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as patched:
        patched.setattr("apps.learning.services.runs.send", lambda task, run_id: None)
        made = Made()
        try:
            yield made
        finally:
            truncate_all()


class Made:
    """A constructed memory with its evaluation and holdout, both positive."""

    def __init__(self) -> None:
        self.world = make_world()
        self.me = self.world.principal
        self.collection = collection.build(self.me)
        self.answers = collection.search_all(self.collection)
        self.feedback = collection.judge_all(self.collection, self.answers)
        self.evaluation = collection.evaluate(self.me)
        self.query_set = collection.query_set(self.collection)
        self.holdout = collection.hold_out(self.me, self.evaluation, self.query_set)
        self.other_holdouts()

    def other_holdouts(self) -> None:
        """A holdout has a snapshot of its own, so that no test's transaction may be around it."""
        me, chosen, queries = self.me, self.evaluation, self.query_set
        self.over_milder = collection.hold_out(me, chosen, queries, baseline_multipliers={"lexical": 0.5})
        self.loose = collection.hold_out(me, chosen, queries, config={"max_regression_fraction": 0.5})
        self.weaker = collection.evaluate(me, config={"min_ndcg_gain": 0.0})
        self.of_weaker = collection.hold_out(me, self.weaker, queries)
        few = collection.query_set(self.collection, self.collection.unseen[:5])
        self.of_few = collection.hold_out(me, chosen, few)

    def create(self, **more: Any) -> RankingProfile:
        given: dict[str, Any] = {"evaluation_id": self.evaluation, "holdout_id": self.holdout} | more
        with principal_session(self.me):
            return create_profile(**given)

    def multipliers(self) -> list[float]:
        with principal_session(self.me):
            return EvaluationResult.objects.get(evaluation_id=self.evaluation).multipliers


def refusal(call) -> dict[str, Any]:
    with pytest.raises(NotPromotable) as refused:
        call()
    return refused.value.more


def test_stored_evidence_makes_a_profile_of_what_it_proposed(evidence) -> None:
    profile = evidence.create()
    assert profile.multipliers == evidence.multipliers()
    assert (profile.scopes, profile.scope_key, profile.surface, profile.formula) == (
        None,
        "*",
        "results",
        "weighted",
    )
    assert profile.baseline_profile_id is None
    kept = profile.evidence
    assert kept["evaluation"]["decision"] == "improved_on_observed_candidates"
    assert kept["holdout"]["decision"] == "improved_full_retrieval"
    assert kept["holdout"]["ndcg_gain_interval"][0] > 0
    assert evidence.create().pk == profile.pk
    with clock.frozen(clock.now()):
        assert evidence.create(effective_until=clock.now() + timedelta(days=30)).pk != profile.pk


def test_the_whole_loop_ends_where_it_began(evidence) -> None:
    at, me = clock.now(), evidence.me
    question = evidence.collection.unseen[0]

    def answer():
        found = ask(me, question.text, reference_time=at)
        return found["profile"]["status"], [
            (row["provenance"]["identity"], row["score"]) for row in found["results"]
        ]

    first = answer()
    assert first[0] == "none"
    assert first[1][0][0] != question.relevant
    profile = evidence.create()
    activate(me, profile.pk)
    learned = answer()
    assert learned[0] == "applied"
    assert learned[1][0][0] == question.relevant
    deactivate(me, profile.pk, expected=profile.pk)
    assert answer() == first


def test_a_question_that_was_altered_does_not_reproduce(evidence) -> None:
    with principal_session(evidence.me):
        Holdout.objects.filter(pk=evidence.holdout).update(baseline_multipliers=[1, 0.5, 1, 1, 1, 1])
    with pytest.raises(EvidenceNotReproducible):
        evidence.create()


def test_a_baseline_other_than_unity_is_named(evidence) -> None:
    milder = make_profile(evidence.me, (1.0, 0.5, 1.0, 1.0, 1.0, 1.0))
    other = make_profile(evidence.me, (1.0, 0.5, 1.0, 1.0, 1.0, 1.0), scopes=("docs",))
    holdout = evidence.over_milder
    for named in (None, other, make_profile(evidence.me)):
        with pytest.raises(WrongBaseline):
            evidence.create(holdout_id=holdout, baseline_profile_id=named)
    with pytest.raises(UnknownProfile):
        evidence.create(holdout_id=holdout, baseline_profile_id=uuid4())
    made = evidence.create(holdout_id=holdout, baseline_profile_id=milder)
    assert made.baseline_profile_id == milder
    with pytest.raises(WrongBaseline):
        activate(evidence.me, made.pk)
    activate(evidence.me, milder)
    assert activate(evidence.me, made.pk, expected=milder)["active"] == str(made.pk)


def test_a_withdrawn_label_ends_the_evidence(evidence) -> None:
    answer, feedback = evidence.answers[0], evidence.feedback[0]
    with principal_session(evidence.me):
        gone = JudgmentRequest(feedback_id=uuid4(), withdraws=feedback)
        record_judgment(receipt_id=UUID(answer["retrieval_receipt_id"]), submission=gone)
    with pytest.raises(EvidenceNotReproducible):
        evidence.create()
    refused = Api(evidence.me, "learning").post("/v1/learning/profiles", body_of(evidence))
    assert (refused.status_code, code_of(refused)) == (409, "not_reproducible")


def test_an_erased_trace_ends_the_evidence(evidence) -> None:
    with principal_session(evidence.me):
        erase_trace(trace_id=UUID(evidence.answers[0]["trace_id"]))
    with pytest.raises(EvidenceNotReproducible):
        evidence.create()


def test_labels_admitted_later_leave_the_evidence_as_it_is(evidence) -> None:
    later = collection.search_all(evidence.collection, evidence.collection.unseen[:2])
    collection.judge_all(evidence.collection, later, evidence.collection.unseen[:2])
    assert evidence.create()


def body_of(evidence) -> dict[str, Any]:
    return {"evaluation_id": str(evidence.evaluation), "holdout_id": str(evidence.holdout)}


def test_there_is_no_way_to_post_a_decision(evidence) -> None:
    api = Api(evidence.me, "learning")
    for name, value in (
        ("decision", "improved_full_retrieval"),
        ("multipliers", {"lexical": 4.0}),
        ("report", {"decision": "improved_full_retrieval"}),
        ("evidence", {}),
    ):
        refused = api.post("/v1/learning/profiles", body_of(evidence) | {name: value})
        assert (refused.status_code, refused.json()["pointer"]) == (400, f"/{name}")
    with principal_session(evidence.me):
        assert not RankingProfile.objects.exists()
    made = api.post("/v1/learning/profiles", body_of(evidence))
    assert made.status_code == 201, made.content
    again = api.post("/v1/learning/profiles", body_of(evidence))
    assert again.content == made.content
    assert api.get(f"/v1/learning/profiles/{made.json()['profile_id']}").json()["profile"] == made.json()


def test_a_result_cannot_be_written_over_and_a_forged_one_does_not_reproduce(
    evidence, owner_connection
) -> None:
    chosen = {"evaluation_id": evidence.evaluation}
    with principal_session(evidence.me):
        true = EvaluationResult.objects.get(**chosen).checksum
        with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
            EvaluationResult.objects.filter(**chosen).update(multipliers=[4.0] * 6)
    forge = "UPDATE learning_evaluation_result SET checksum = %s WHERE evaluation_id = %s"
    owner_connection.execute(forge, ["0" * 64, evidence.evaluation])
    try:
        with pytest.raises(EvidenceNotReproducible):
            evidence.create()
    finally:
        owner_connection.execute(forge, [true, evidence.evaluation])
    assert evidence.create()


def test_what_only_explored_or_did_not_improve_is_not_promotable(evidence) -> None:
    explored = {"evaluation_id": evidence.weaker, "holdout_id": evidence.of_weaker}
    for more in (explored, {"holdout_id": evidence.loose}):
        assert refusal(lambda more=more: evidence.create(**more))["reason"] == "exploratory"
    lacking = refusal(lambda: evidence.create(holdout_id=evidence.of_few))
    assert (lacking["reason"], lacking["decision"]) == ("holdout_decision", "insufficient_data")
    other = collection.evaluate(evidence.me)
    assert refusal(lambda: evidence.create(evaluation_id=other))["reason"] == "other_evaluation"


def test_a_gate_that_asks_for_more_now_counts_now(evidence) -> None:
    world = evidence.world
    manager = make_staff(world.workspace, "view_traces", "manage_profiles")
    with staff_session(manager):
        document = current_policy(world.workspace.pk, "gate").document
        stricter = document | {"holdout": document["holdout"] | {"min_query_groups": 50}}
        publish_policy(
            workspace_id=world.workspace.pk,
            kind="gate",
            document=stricter,
            if_match=followed(world.workspace.pk, "gate").hash,
            reason="stricter from now on",
        )
    more = refusal(evidence.create)
    assert (more["reason"], more["settings"]) == ("gate_policy", ["min_query_groups"])


def names_of(evidence) -> dict[str, str]:
    """How an operator names the owner of the evidence."""
    with staff_session(make_superuser()):
        subject = Principal.objects.values_list("subject", flat=True).get(pk=evidence.me.principal_id)
    return {"workspace": evidence.world.workspace.slug, "principal": subject}


def command(evidence, *more: str, holdout=None, **names) -> tuple[int, str]:
    """Exit code of `make_profile` and what it said."""
    out, chosen = StringIO(), (str(evidence.evaluation), str(holdout or evidence.holdout))
    try:
        call_command("make_profile", *chosen, *more, **names_of(evidence) | names, stdout=out)
    except CommandError as refused:
        return refused.returncode, str(refused)
    return 0, out.getvalue().strip()


def test_what_is_too_large_for_a_request_is_made_by_an_operator(evidence, monkeypatch) -> None:
    monkeypatch.setattr(evidence_service, "MOST_RECORDS", 43)
    api = Api(evidence.me, "learning")
    refused = api.post("/v1/learning/profiles", body_of(evidence))
    assert (refused.status_code, code_of(refused)) == (409, "not_promotable")
    said = refused.json()
    assert (said["reason"], said["records"], said["most"]) == ("too_large", 44, 43)
    code, made = command(evidence)
    assert code == 0, made
    monkeypatch.undo()
    assert api.post("/v1/learning/profiles", body_of(evidence)).json()["profile_id"] == made


def test_a_request_gives_up_a_fit_that_takes_too_long(evidence, monkeypatch) -> None:
    monkeypatch.setattr(evidence_service, "PATIENCE_S", 0.0)
    assert refusal(evidence.create)["reason"] == "too_large"
    manager = make_staff(evidence.world.workspace, "view_traces", "manage_profiles")
    assert command(evidence)[0] == 0
    with principal_session(evidence.me):
        profile = RankingProfile.objects.get().pk
    with staff_session(manager):
        assert staff.reproduction_for(profile_id=profile) == "too_large"
    monkeypatch.undo()
    with staff_session(manager):
        assert staff.reproduction_for(profile_id=profile) == "holds"


def test_the_command_says_what_evidence_lacks_and_whom_it_does_not_know(evidence) -> None:
    assert command(evidence, holdout=evidence.of_few) == (1, "not_promotable: holdout_decision")
    assert command(evidence, holdout=evidence.loose) == (1, "not_promotable: exploratory")
    assert command(evidence, holdout=uuid4())[0] == 2
    assert command(evidence, "--baseline", str(uuid4()))[0] == 2
    assert command(evidence, "--until", "2020-01-01T00:00:00Z")[0] == 2
    assert command(evidence, workspace="nowhere")[0] == 2
    assert command(evidence, principal="nobody") == (2, "unknown_principal: No such principal has receipts")
    code, first = command(evidence, "--until", "2100-01-01T00:00:00Z")
    assert (code, command(evidence, "--until", "2100-01-01T00:00:00Z")) == (0, (0, first))


def test_other_calls_of_the_principal_do_not_wait_while_evidence_is_computed(evidence, monkeypatch) -> None:
    held = []
    computed = evidence_service.recompute_holdout

    def and_look(holdout):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
            )
            held.append(cursor.fetchone()[0])
        return computed(holdout)

    monkeypatch.setattr(evidence_service, "recompute_holdout", and_look)
    evidence.create()
    assert held == [0]


def test_an_evaluation_that_has_not_ended_makes_none(evidence) -> None:
    with principal_session(evidence.me):
        Evaluation.objects.filter(pk=evidence.evaluation).update(status="running", finished_at=None)
    assert refusal(evidence.create)["reason"] == "not_finished"


def test_of_others_there_is_no_evidence_and_no_term_in_the_past(evidence) -> None:
    stranger = make_principal(evidence.world.workspace)
    with principal_session(stranger), pytest.raises(UnknownEvaluation):
        create_profile(evaluation_id=evidence.evaluation, holdout_id=evidence.holdout)
    with pytest.raises(UnknownHoldout):
        evidence.create(holdout_id=uuid4())
    with pytest.raises(InvalidRequest):
        evidence.create(effective_until=clock.now() - timedelta(seconds=1))
    with pytest.raises(Problem):
        evidence.create(evaluation_id=uuid4())
