"""Pages of evaluations, holdouts and query sets: who sees what, what is said, and that an act does what it showed."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client

from apps.core import clock
from apps.core.db.sessions import principal_session, staff_session
from apps.core.models import AuditEntry
from apps.feedback.models import Judgment
from apps.feedback.schemas import JudgmentRequest
from apps.feedback.services.judgments import record_judgment
from apps.learning.admin.evaluation_parts import decision_sentence, shortest_way, waterfall
from apps.learning.admin.holdout_parts import failed_gates
from apps.learning.models import EvaluatedQuery, Evaluation
from apps.traces.models import Trace
from apps.traces.services.erase import erase_trace
from tests.support import collection
from tests.support.factories import make_staff, make_world
from tests.support.learning_pages import Dialog, text_of
from tests.support.statements import sent

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quiet")]

SMALL = {"min_training_queries": 2, "min_validation_queries": 2}


class Scene:
    """A small judged collection with an evaluation that only explores, since it asks for little."""

    def __init__(self, **sizes: int) -> None:
        self.world = make_world()
        self.me = self.world.principal
        self.users: dict[Client, Any] = {}
        given = {"training": 3, "validation": 3, "unseen": 2} | sizes
        self.made = collection.judged_collection(self.me, **given)
        self.evaluation = collection.evaluate(self.me, config=SMALL)
        self.ana = self.client("view_traces", "manage_profiles", "audit")

    def client(self, *grants: str) -> Client:
        client, user = Client(), make_staff(self.world.workspace, *grants)
        client.force_login(user)
        self.users[client] = user
        return client

    def url(self, act: str = "change", key: UUID | None = None, kind: str = "evaluation") -> str:
        return f"/admin/learning/{kind}/{key or self.evaluation}/{act}/"

    def page(self, client: Client | None = None, **more: Any) -> str:
        return text_of((client or self.ana).get(self.url(**more)))

    def evaluations(self) -> list[Evaluation]:
        with principal_session(self.me):
            return list(Evaluation.objects.order_by("requested_at"))


@pytest.fixture
def scene() -> Scene:
    return Scene()


def fragment(client: Client, url: str) -> Any:
    return client.get(url, headers={"X-Gov-Dialog": "1"})


# Evaluations.


def test_lists_and_pages_answer_by_grant(scene: Scene) -> None:
    viewer, nobody = scene.client("view_traces"), scene.client("operate_collection")
    stranger = Client()
    stranger.force_login(make_staff(make_world().workspace, "view_traces", "manage_profiles"))
    for listing in ("evaluation", "holdout", "queryset"):
        assert viewer.get(f"/admin/learning/{listing}/").status_code == 200
        assert nobody.get(f"/admin/learning/{listing}/").status_code == 403
    assert "improved" in text_of(viewer.get("/admin/learning/evaluation/"))
    assert viewer.get(scene.url()).status_code == 200
    for act in ("change", "progress", "queries"):
        assert [c.get(scene.url(act)).status_code for c in (stranger, nobody)] == [404, 404]
    for act in ("again", "holdout", "cancel"):
        assert [c.get(scene.url(act)).status_code for c in (viewer, stranger, nobody)] == [404] * 3
    assert viewer.get("/admin/learning/evaluation/new/").status_code == 404


def test_the_page_says_the_decision_and_how_far_to_trust_it(scene: Scene) -> None:
    text = scene.page()
    assert "Improved on what was judged: NDCG@10 +" in text
    assert (
        "Exploratory: it asks less than the gate policy in min training queries, min validation queries."
        in text
    )
    assert "first fitted on these" in text
    assert "detectable gain" in text
    assert "judgments until the start 6" in text.replace("  ", " ")
    assert "query groups for judging, at least 2 3" in text
    order = [text.index(words) for words in ("Improved on", "Gain", "Multipliers", "Queries by regression")]
    assert order == sorted(order)
    again = collection.evaluate(scene.me, config=SMALL)
    assert "1 fitted before on the same groups" in scene.page(key=again)
    assert "nok" not in text  # no word of any query


def test_the_page_says_when_a_receipt_was_erased_and_nothing_of_it_before(scene: Scene) -> None:
    assert "no longer reproduces" not in scene.page()
    with principal_session(scene.me):
        erase_trace(trace_id=Trace.objects.values_list("pk", flat=True)[0])
    said = "It no longer reproduces: 1 receipt that it stands on is gone."
    assert said in scene.page()
    assert said in scene.page(client=scene.client("view_traces"))


def test_too_few_labels_say_how_many_and_what_to_label(scene: Scene) -> None:
    few = collection.evaluate(scene.me)
    text = scene.page(key=few)
    assert "Not enough labels: 3 of 20 validation groups and 3 of 20 training groups" in text
    assert "34 more queries need a relevant and a not relevant result" in text
    assert "What to label next" in text
    assert text.index("What to label next") < text.index("From judgments")


def test_the_shortest_way_names_what_has_still_to_be_searched() -> None:
    plan = {"training_queries_lacking": 2, "validation_queries_lacking": 3}
    there = [{"split": "validation", "group_id": name} for name in "abcd"]
    words = shortest_way({"label_plan": plan}, there)
    assert "5 more queries" in words
    assert words.endswith("3 are listed below, 2 have still to be searched.")
    plan["training_queries_lacking"] = 0
    assert shortest_way({"label_plan": plan}, there).endswith("label those that are listed below.")
    assert "nothing that is there is of use" in shortest_way({"label_plan": plan}, [])


def test_searches_that_nobody_judged_are_what_to_label_next(scene: Scene) -> None:
    (answer,) = collection.search_all(scene.made, scene.made.unseen[:1])
    few = collection.evaluate(scene.me)
    receipt = answer["retrieval_receipt_id"]
    assert f"{receipt[:4]}…{receipt[-7:]} nothing is judged yet" in scene.page(key=few)
    assert "Open desk with these" not in scene.page(key=few)
    curator = scene.client("view_traces", "curate", "reveal_text")
    html = curator.get(scene.url(key=few)).content.decode()
    assert f'href="/admin/desk/labels/?evaluation={few}"' in html
    assert curator.get(f"/admin/desk/labels/?evaluation={few}").status_code == 200
    assert "1 are listed below, 33 have still to be searched" in scene.page(key=few)
    collection.judge_all(scene.made, [answer], scene.made.unseen[:1])
    assert receipt[-7:] not in scene.page(key=few)


def test_no_improvement_says_which_condition_does_not_hold() -> None:
    report = {
        "decision": "no_improvement",
        "config": {"ndcg_k": 10, "min_ndcg_gain": 0.01},
        "coverage": {"validation_queries": 31},
        "validation_ndcg_gain": 0.004,
        "validation_gain_interval": [-0.002, 0.009],
        "validation_pairwise_gain": -0.02,
    }
    words = decision_sentence(report)
    assert "No improvement: NDCG@10 +.004 [−.002, .009] n 31." in words
    assert "below .010" in words
    assert "reaches down to zero" in words
    assert "falls by .0200" in words


def test_the_waterfall_adds_up() -> None:
    report = {
        "config": {"min_training_queries": 20, "min_validation_queries": 20},
        "coverage": {
            "feedback_records": 100,
            "requests_with_pairs": 50,
            "explicit_pairs": 140,
            "training_queries": 30,
            "validation_queries": 14,
        },
        "exclusions": {
            "other_surface_records": 7,
            "other_scope_records": 13,
            "requests_without_explicit_pairs": 9,
        },
    }
    cells = [[str(cell) for cell in row.cells] for row in waterfall(report).rows]
    assert cells[0][2] == "100"
    assert [row[1:] for row in cells[1:3]] == [["−7", "93"], ["−13", "80"]]
    assert ["searches with a judgment", "", "59"] in cells
    assert "14 of 20" in cells[-1][2]


def test_queries_are_read_by_regression_page_by_page(scene: Scene, monkeypatch: Any) -> None:
    monkeypatch.setattr("apps.learning.admin.regression.A_PAGE", 4)
    with principal_session(scene.me):
        rows = list(EvaluatedQuery.objects.all())
        want = sorted(rows, key=lambda row: (row.candidate_judged_ndcg - row.baseline_judged_ndcg, row.pk))
    seen: list[str] = []
    url = scene.url("queries")
    while url:
        html = fragment(scene.ana, url).content.decode()
        seen += [
            part.split('"')[0] for part in html.split('<code title="')[1:] if len(part.split('"')[0]) == 64
        ]
        further = [part.split('"')[0] for part in html.split('href="')[1:] if "after=" in part.split('"')[0]]
        url = f"{scene.url('queries')}{further[0].replace('&amp;', '&')}" if further else ""
    assert seen == [row.group_id for row in want]
    assert scene.ana.get(scene.url("queries") + "?after=nothing&sort=else").status_code == 200


def test_an_evaluation_is_asked_for_with_a_reason_and_counts_once(scene: Scene) -> None:
    dialog = Dialog(scene.ana, f"/admin/accounts/principal/{scene.me.principal_id}/evaluate/")
    assert "6 judgments" in dialog.text
    assert dialog.send(surface="results", scopes="", reason="").status_code == 422
    assert dialog.send(surface="results", scopes="no such slug!").status_code == 400
    assert len(scene.evaluations()) == 1
    answer = dialog.send(surface="results", scopes="docs, wiki")
    made = scene.evaluations()[-1]
    assert answer.url == scene.url(key=made.pk)
    assert dialog.send(surface="results", scopes="docs, wiki").url == answer.url
    assert [one.scopes for one in scene.evaluations()] == [None, ["docs", "wiki"]]
    with staff_session(scene.users[scene.ana]):
        entry = AuditEntry.objects.get(object_id=str(made.pk), object_type="learning.evaluation")
        assert (entry.action, entry.reason) == ("learning.start_evaluation", "better on unseen queries")


def test_from_the_list_a_principal_is_named_and_only_where_one_may(scene: Scene) -> None:
    elsewhere = make_world().principal
    new = "/admin/learning/evaluation/new/"
    fields = {"surface": "results", "scopes": ""}
    refused = Dialog(scene.ana, new).send(principal=str(elsewhere.principal_id), **fields)
    assert refused.status_code == 422
    assert Dialog(scene.ana, new).send(principal=str(scene.me.principal_id), **fields).status_code == 302
    assert Dialog(scene.ana, scene.url("again")).send().status_code == 302
    assert len(scene.evaluations()) == 3


def test_a_run_shows_its_progress_and_can_be_stopped(scene: Scene) -> None:
    Dialog(scene.ana, scene.url("again")).send()
    run = scene.evaluations()[-1].pk
    line = fragment(scene.ana, scene.url("progress", run)).content.decode()
    assert "Waiting for a worker" in line
    assert "data-poll" in line
    assert "Cancel…" in line
    assert "Cancel…" not in fragment(scene.client("view_traces"), scene.url("progress", run)).content.decode()
    assert Dialog(scene.ana, scene.url("cancel", run)).send().status_code == 302
    assert scene.evaluations()[-1].status == "cancelled"
    assert "It was cancelled." in scene.page(key=run)
    assert "data-poll" not in fragment(scene.ana, scene.url("progress", run)).content.decode()
    assert Dialog(scene.ana, scene.url("cancel", run)).send().status_code == 409


def test_a_failed_run_says_why(scene: Scene) -> None:
    with principal_session(scene.me):
        Evaluation.objects.filter(pk=scene.evaluation).update(
            status="failed", failure_code="too_large", finished_at=clock.now()
        )
    assert "more records or pairs than the settings allow" in scene.page()


def test_a_holdout_needs_a_query_set_and_something_to_try(scene: Scene) -> None:
    refused = Dialog(scene.ana, scene.url("holdout")).send(query_set="")
    assert refused.status_code in (409, 422)
    assert "has no query set" in text_of(scene.ana.get(scene.url("holdout")))
    made = collection.query_set(scene.made)
    dialog = Dialog(scene.ana, scene.url("holdout"))
    assert "Searches up to 2 queries twice" in dialog.text
    answer = dialog.send(query_set=str(made))
    assert answer.url.startswith("/admin/learning/holdout/")
    assert "Waiting for a worker" in text_of(scene.ana.get(answer.url))
    seen = collection.query_set(scene.made, scene.made.judged[:2])
    overlap = Dialog(scene.ana, scene.url("holdout")).send(query_set=str(seen))
    assert overlap.status_code == 409
    assert "shares queries" in text_of(overlap)


def test_a_query_set_shows_its_queries_and_no_text(scene: Scene) -> None:
    made = collection.query_set(scene.made, slice="names")
    text = scene.page(kind="queryset", key=made)
    assert "names 2" in text
    assert scene.made.unseen[0].relevant in text
    assert scene.made.unseen[0].text not in text
    assert "Not used yet." in text


def test_what_lists_ask_does_not_grow_with_their_rows(scene: Scene) -> None:
    listing = "/admin/learning/evaluation/"
    with sent() as few:
        scene.ana.get(listing)
    for _ in range(3):
        collection.evaluate(scene.me, config=SMALL)
    with sent() as many:
        scene.ana.get(listing)
    assert len(many) <= len(few)
    with sent() as page:
        scene.ana.get(scene.url())
    assert len(page) <= 40
    assert not any('"report"' in statement for statement, _ in [*many, *page])


# Holdouts.


def test_failed_gates_are_words_with_numbers() -> None:
    report = {
        "failed_gates": ["ndcg_gain", "recall", "regression_fraction", "protected_slice"],
        "config": {"min_ndcg_gain": 0.01, "max_regression_fraction": 0.1, "min_query_groups": 20},
        "coverage": {"query_groups": 50},
        "ndcg_gain": 0.002,
        "baseline_recall": 0.7,
        "candidate_recall": 0.65,
        "regression_fraction": 0.28,
        "slices": [{"name": "names", "holds": False, "ndcg_gain": -0.2}],
    }
    found = failed_gates(report)
    assert found is not None
    said = [f"{step.name} {step.evidence}" for step in found.steps]
    assert "+.002, at least .010" in said[0]
    assert ".7000 before, .6500 after" in said[1]
    assert "14 of 50 groups, at most 10.0" in said[2]
    assert said[3].endswith("names")


@pytest.mark.django_db(transaction=True)
def test_a_holdout_shows_both_arms_and_becomes_a_profile() -> None:
    scene = Scene(training=22, validation=22, unseen=22)
    evaluation = collection.evaluate(scene.me)
    holdout = collection.hold_out(scene.me, evaluation, collection.query_set(scene.made))
    text = scene.page(kind="holdout", key=holdout)
    assert "Improved on unseen queries: NDCG@10 +.369" in text
    assert "A profile can be made of it." in text
    assert ".6309 1.0000 +.3691" in text
    assert "regressed 0 of 22 groups, limit 10.0" in text
    assert "fresh-" in text
    assert "+.369 [.369, .369] n 22" in scene.page(key=evaluation)
    assert "all 22 groups" in text
    rows = text_of(fragment(scene.ana, scene.url("queries", holdout, "holdout")))
    assert rows.count("→") >= 22 * 2
    dialog = Dialog(scene.ana, scene.url("profile", holdout, "holdout"))
    assert "Nothing is activated." in dialog.text
    assert scene.client("view_traces").get(dialog.url).status_code == 404
    answer = dialog.send(baseline="base scoring", term="90")
    assert answer.url.startswith("/admin/learning/rankingprofile/")
    made = text_of(scene.ana.get(answer.url))
    assert "+.369 [.369, .369] n 22, minimum .010" in made
    assert "never active" in made
    assert "in 89 d" in made
    profile = UUID(answer.url.split("/")[-3])
    assert str(profile)[-7:] in scene.page(kind="holdout", key=holdout)
    computed = scene.url("reproduces", profile, "rankingprofile")
    assert "computed again, equal" in text_of(fragment(scene.ana, computed))
    with principal_session(scene.me):
        judged = Judgment.objects.earliest("admitted_at")
        submission = JudgmentRequest(feedback_id=uuid4(), withdraws=judged.feedback_id)
        record_judgment(receipt_id=judged.receipt_id, submission=submission)
    assert "no longer: a label or receipt has changed" in text_of(fragment(scene.ana, computed))
    again = Dialog(scene.ana, dialog.url).send(baseline="base scoring", term="30")
    assert again.status_code == 409
