"""The labelling desk: who sits there, what is revealed once, and that each answer is a record of the person's own."""

import json
import re
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import Client

from apps.core import clock
from apps.core.db.sessions import principal_session, staff_session
from apps.core.models import AuditEntry
from apps.feedback.models import Judgment
from apps.feedback.selectors.labels import folded_labels
from apps.graph.models import Node
from apps.learning.desk.sitting import LONGEST
from apps.learning.models import EvaluationResult
from apps.retrieval.models import Receipt
from tests.support import collection, library
from tests.support.factories import make_staff, make_world
from tests.support.learning_pages import text_of
from tests.support.statements import sent

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_quiet")]

QUESTION = "ledger balance"
ITEM, JUDGE, UNDO = "/admin/desk/labels/item/", "/admin/desk/labels/judge/", "/admin/desk/labels/undo/"
GRANTS = ("view_traces", "curate", "reveal_text", "audit")


@pytest.fixture
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    collection.quiet(monkeypatch)


class Desk:
    """A memory, one search of it, and a curator."""

    def __init__(self) -> None:
        self.world = make_world()
        self.me = self.world.principal
        texts = ("the ledger keeps a balance", "a ledger of trips", "balance of the seesaw", "nothing of it")
        library.store(self.me, *(library.wiki(f"page-{n}", text) for n, text in enumerate(texts)))
        self.receipt = UUID(library.ask(self.me, QUESTION)["retrieval_receipt_id"])
        self.client, self.user = self.sit(*GRANTS)

    def sit(self, *grants: str) -> tuple[Client, Any]:
        client, user = Client(), make_staff(self.world.workspace, *grants)
        client.force_login(user)
        return client, user

    def open(self, blind: bool = False, **queue: Any) -> Any:
        asked = queue or {"receipt": self.receipt}
        return self.client.post(
            "/admin/desk/labels/open/",
            {**asked, "reason": "pooled labels"} | ({"blind": "on"} if blind else {}),
            follow=True,
        )

    def form(self, page: Any) -> dict[str, str]:
        return dict(re.findall(r'name="(receipt|node|feedback_id)" value="([^"]+)"', page.content.decode()))

    def answer(self, verdict: str, page: Any = None, **more: Any) -> Any:
        form = self.form(page or self.client.get(ITEM))
        return self.client.post(JUDGE, {**form, "verdict": verdict, **more}, follow=True)

    def nodes(self) -> list[UUID]:
        with principal_session(self.me):
            return list(Receipt.objects.get(pk=self.receipt).node_ids)

    def labels(self) -> dict[UUID, bool]:
        with principal_session(self.me):
            found = folded_labels()
        assert set(found.annotators) <= {self.user.username}
        return dict(zip(found.node_ids, found.values.tolist(), strict=True))

    def entries(self, action: str) -> list[AuditEntry]:
        with staff_session(self.user):
            return list(AuditEntry.objects.filter(action=action))


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_it_needs_all_three_grants_and_says_nothing_else(desk: Desk) -> None:
    for missing in GRANTS[:3]:
        client, _ = desk.sit(*(grant for grant in GRANTS if grant != missing))
        for url in ("/admin/desk/labels/", f"/admin/desk/labels/?receipt={desk.receipt}", ITEM):
            assert client.get(url).status_code == 404
        assert client.post("/admin/desk/labels/open/", {"receipt": desk.receipt}).status_code == 404
        assert client.post(JUDGE).status_code == 404
    stranger = Client()
    stranger.force_login(make_staff(make_world().workspace, *GRANTS))
    for name, value in (("receipt", desk.receipt), ("principal", desk.me.principal_id), ("receipt", uuid4())):
        assert stranger.get(f"/admin/desk/labels/?{name}={value}").status_code == 404
    assert Client().get("/admin/desk/labels/").status_code == 302


def test_no_text_before_the_reveal_and_one_entry_for_it(desk: Desk) -> None:
    before = desk.client.get(f"/admin/desk/labels/?receipt={desk.receipt}")
    assert QUESTION not in before.content.decode()
    assert "seesaw" not in before.content.decode()
    assert desk.client.get(ITEM).status_code == 302  # nothing is open yet
    assert not desk.entries("learning.open_desk")
    refused = desk.client.post("/admin/desk/labels/open/", {"receipt": desk.receipt, "reason": " "})
    assert (refused.status_code, "A reason is needed" in refused.content.decode()) == (400, True)
    page = desk.open()
    assert QUESTION in page.content.decode()
    for _ in range(3):
        page = desk.client.get(ITEM)
    assert "no-store" in page["Cache-Control"]
    assert "unsafe" not in page["Content-Security-Policy"]
    (entry,) = desk.entries("learning.open_desk")
    assert (entry.reason, entry.details["queue"]) == ("pooled labels", f"receipt={desk.receipt}")


def test_an_answer_is_a_label_of_the_persons_own_and_moves_on(desk: Desk) -> None:
    desk.open()
    first, second, *_ = desk.nodes()
    desk.answer("relevant", note="names the ledger")
    page = desk.answer("not")
    assert desk.labels() == {first: True, second: False}
    assert "2 judged by you" in text_of(page)
    with principal_session(desk.me):
        record = Judgment.objects.get(node_ids=[first])
    assert (record.reason, record.method, record.surface) == ("names the ledger", "explicit_user", "results")
    assert len(desk.entries("feedback.judge")) == 2


@pytest.mark.parametrize(("grade", "relevant"), [(0, False), (1, True), (4, True)])
def test_a_grade_is_a_label_with_it(desk: Desk, grade: int, relevant: bool) -> None:
    desk.open()
    desk.answer(f"grade{grade}")
    with principal_session(desk.me):
        record = Judgment.objects.get()
    assert (record.grades, record.relevant) == ([grade], [relevant])


def test_a_submission_that_comes_twice_is_one_label_and_one_undo(desk: Desk) -> None:
    page = desk.open()
    for _ in range(2):
        desk.answer("relevant", page)
    assert list(desk.labels().values()) == [True]
    desk.client.post(UNDO)
    assert desk.labels() == {}
    desk.client.post(UNDO)
    with principal_session(desk.me):
        assert [each.kind for each in Judgment.objects.order_by("admitted_at")] == ["labels", "withdrawal"]


def test_undo_brings_the_passage_back(desk: Desk) -> None:
    asked = desk.form(desk.open())["node"]
    assert desk.form(desk.answer("not"))["node"] != asked
    again = desk.client.post(UNDO, follow=True)
    assert desk.form(again)["node"] == asked


def test_what_cannot_be_judged_is_no_label(desk: Desk) -> None:
    page = desk.open()
    for _ in desk.nodes():
        page = desk.answer("skip", page)
    assert desk.labels() == {}
    assert "End of the queue" in text_of(page)
    assert f"skipped {len(desk.nodes())}" in text_of(page)


def test_blind_hides_rank_and_score_and_shuffles_always_alike(desk: Desk) -> None:
    with principal_session(desk.me):
        row = Receipt.objects.get(pk=desk.receipt)
    orders = []
    for _ in range(2):
        html = desk.open(blind=True).content.decode()
        for score in row.scores:
            assert f"{score:.4f}" not in html
        assert "rank 1" not in html
        orders.append(desk.form(desk.client.get(ITEM))["node"])
        assert desk.form(desk.client.get(ITEM))["node"] == orders[-1]
    seen = desk.open(blind=False).content.decode()
    assert f"rank 1, score {row.scores[0]:.4f}" in seen


def test_a_changed_text_is_not_judged_by_its_old_place(desk: Desk) -> None:
    first = desk.nodes()[0]
    with principal_session(desk.me):
        slug = Node.objects.select_related("passage").get(pk=first).passage.slug
    library.store(desk.me, library.wiki(slug, "other words altogether"))
    page = desk.open()
    assert "The source is gone" in text_of(page), "a text that is replaced is another node"
    assert "other words altogether" not in page.content.decode()
    assert 'value="relevant"' not in page.content.decode()
    desk.answer("skip", page)
    assert desk.labels() == {}


def test_a_query_that_is_not_kept_cannot_be_judged_by(desk: Desk) -> None:
    # The filter refuses to keep this one, so the trace has no words.
    asked = library.ask(desk.me, "ledger balance password: hunter2hunter2")
    page = desk.open(receipt=asked["retrieval_receipt_id"])
    assert "not kept any more" in text_of(page)
    assert 'value="relevant"' not in page.content.decode()


def test_only_passages_of_the_desk_are_taken(desk: Desk) -> None:
    page = desk.open()
    form = desk.form(page)
    for wrong in ({"receipt": uuid4()}, {"verdict": "perhaps"}, {"node": uuid4()}, {"feedback_id": "x"}):
        answer = desk.client.post(JUDGE, {**form, "verdict": "relevant", **wrong})
        assert answer.status_code == 400
        assert "Not saved" in text_of(answer)
    kept = desk.client.post(JUDGE, {**form, "verdict": "relevant", "note": "password: hunter2hunter2"})
    assert kept.status_code == 400
    assert f'value="{form["feedback_id"]}"' in kept.content.decode()
    assert desk.labels() == {}


def test_a_desk_ends_with_the_sitting_and_by_closing(desk: Desk) -> None:
    desk.open()
    now = clock.now()
    with clock.frozen(now + LONGEST + LONGEST / 8):
        assert desk.client.get(ITEM).status_code == 302
    assert desk.client.get(ITEM).status_code == 200
    desk.client.post("/admin/desk/labels/leave/")
    assert desk.client.get(ITEM).status_code == 302


def test_the_queue_of_an_evaluation_is_what_it_lacks(desk: Desk) -> None:
    collection.judged_collection(desk.me, training=3, validation=3, unseen=2)
    evaluation = collection.evaluate(desk.me, config={"min_training_queries": 2, "min_validation_queries": 2})
    with principal_session(desk.me):
        plan = json.loads(EvaluationResult.objects.get(evaluation_id=evaluation).summary)["label_plan"]
    wanted = [one["request_id"] for one in plan["requests"]]
    # What it lacks comes first, then what was searched and not judged.
    page = desk.open(evaluation=evaluation)
    assert desk.form(page)["receipt"] == [*wanted, str(desk.receipt)][0]
    assert "Open desk with these" in text_of(
        desk.client.get(f"/admin/learning/evaluation/{evaluation}/change/")
    )


def test_the_end_says_what_the_evaluation_would_still_lack(desk: Desk) -> None:
    made = collection.build(desk.me, training=3, validation=2, unseen=0)
    collection.search_all(made)
    small = {"min_training_queries": 2, "min_validation_queries": 2}
    evaluation = collection.evaluate(desk.me, config=small)
    page = desk.open(evaluation=evaluation)
    for number in range(200):
        if "End of the queue" in text_of(page):
            break
        # Of five searches one gets no relevant result.
        lacks = desk.form(page)["receipt"] == desk.client.session["labelling_desk"]["receipts"][0]
        page = desk.answer("relevant" if number % 2 and not lacks else "not", page)
    text = text_of(page)
    assert "lacked 2 query groups to fit and 2 to judge" in text
    again = collection.evaluate(desk.me, config=small)
    with principal_session(desk.me):
        plan = json.loads(EvaluationResult.objects.get(evaluation_id=again).summary)["label_plan"]
    left = plan["training_queries_lacking"], plan["validation_queries_lacking"]
    words = f"still lacks {left[0]} and {left[1]}" if any(left) else "lacks none"
    assert f"With the labels of this queue it {words}." in text


def test_the_next_passage_costs_the_same_however_long_the_queue(desk: Desk) -> None:
    def cost() -> int:
        with sent() as statements:
            assert desk.client.get(ITEM).status_code == 200
        return len(statements)

    desk.open(principal=desk.me.principal_id)
    cost()
    short = cost()
    for number in range(6):
        library.ask(desk.me, f"{QUESTION} {number}")
    desk.open(principal=desk.me.principal_id)
    assert cost() == short


def test_get_changes_nothing(desk: Desk) -> None:
    desk.open()
    before = len(desk.entries("learning.open_desk")), desk.labels()
    for _ in range(2):
        desk.client.get("/admin/desk/labels/")
        desk.client.get(ITEM)
    for url in (JUDGE, UNDO, "/admin/desk/labels/open/", "/admin/desk/labels/leave/"):
        assert desk.client.get(url).status_code == 405
    assert (len(desk.entries("learning.open_desk")), desk.labels()) == before
