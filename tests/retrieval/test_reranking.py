"""An installed reranker: its scores are recorded steps, it is asked outside of sessions, and nothing depends on it."""

import json
from types import SimpleNamespace
from uuid import UUID

import numpy as np
import pytest

from apps.core.db.sessions import current, principal_session
from apps.retrieval import checks, reranking
from apps.retrieval.exceptions import CorruptReceipt
from apps.retrieval.extensions import Registry, rerankers
from apps.retrieval.policy import Reranking, ScoringPolicy, unstored
from apps.retrieval.receipts.columns import load_columns
from apps.retrieval.receipts.replay import read, replay, verified
from apps.retrieval.selectors import stored_receipt
from tests.retrieval.test_receipts import TEXTS, keep, signed, stored
from tests.support import library, memory
from tests.support.factories import make_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def me():
    return make_world().principal


class ByLength:
    """Likes long texts; remembers what it was given."""

    version = "by-length-1"

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []
        self.sessions: list[object] = []

    def scores(self, query, texts):
        self.asked.append((query, list(texts)))
        self.sessions.append(current())
        return [min(1.0, len(text) / 1000) for text in texts]


class Broken:
    version = "broken-1"

    def __init__(self, answer) -> None:
        self.answer = answer

    def scores(self, query, texts):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def install(monkeypatch):
    """Sets a reranker for the process."""

    def put(model, name="test"):
        rerankers.register(name, lambda: model)
        monkeypatch.setattr(reranking, "environment", lambda: SimpleNamespace(memory_reranker=name))
        monkeypatch.setattr(checks, "environment", lambda: SimpleNamespace(memory_reranker=name))
        return model

    yield put
    rerankers.unregister("test")


def order(found):
    return [row.node_id for row in found.rows]


def test_none_is_installed_by_default_and_nothing_is_asked(me) -> None:
    memory.store(me, *TEXTS)
    assert rerankers.names() == ()
    found = memory.ask(me, "harbour crane inspection")
    assert (found.reranker, found.errors) == (None, {})
    assert not any(step.kind.startswith("rerank") for row in found.rows for step in row.adjustments)


def test_the_first_rows_are_ranked_anew_and_come_first(me, install) -> None:
    memory.store(me, *TEXTS)
    policy = unstored(ScoringPolicy(rerank=Reranking(top=3, keep=0.25)))
    before = memory.ask(me, "harbour crane inspection", policy=policy)
    model = install(ByLength())
    after = memory.ask(me, "harbour crane inspection", policy=policy)
    assert after.reranker == "by-length-1"
    assert set(order(after)[:3]) == set(order(before)[:3])
    assert order(after)[3:] == order(before)[3:], "the others keep their order"
    was = {row.node_id: row.score for row in before.rows}
    for row in after.rows[:3]:
        said = min(1.0, len(f"{row.title}\n{row.content}") / 1000)
        assert row.score == pytest.approx(0.25 * was[row.node_id] + 0.75 * said, abs=1e-6)
        assert [step.kind for step in row.adjustments] == ["rerank_keep", "rerank"]
    assert [row.score for row in after.rows[:3]] == sorted((r.score for r in after.rows[:3]), reverse=True)
    assert len(model.asked[0][1]) == 3
    assert after.rows[2].score < after.rows[3].score, "a reranked row stands before a higher one that is not"


def test_what_a_model_is_given_is_cut(me, install) -> None:
    memory.store(me, "needle " + "straw " * 1500)
    model = install(ByLength())
    memory.ask(me, "needle " * 100)
    ((query, texts),) = model.asked
    assert len(query) == 200
    assert len(texts[0]) + len(query) == 1700


def test_replay_needs_no_model_neither_of_one_receipt_nor_of_columns(me, install) -> None:
    turns = [
        memory.PassageItem(
            identity=f"t{n}", text="harbour crane" if n == 3 else f"and then {n}", session="s", position=n
        )
        for n in range(6)
    ]
    memory.store(me, *TEXTS, *turns)
    install(ByLength())
    kept = [
        keep(me, policy=unstored(ScoringPolicy(rerank=Reranking(top=top, keep=share))), multipliers=given)[1]
        for top, share, given in ((3, 0.3, None), (12, 0.77, {"lexical": 3.7}), (50, 0.0, None))
    ]
    rerankers.unregister("test")
    for receipt_id in kept:
        receipt = stored(me, receipt_id).receipt
        assert replay(receipt).exact
        assert receipt.features.extensions == {"reranker": "by-length-1"}
        assert any(candidate.reranked for candidate in receipt.candidates)
    inherited = [
        [step.kind for step in c.adjustments][-3:]
        for c in stored(me, kept[1]).receipt.candidates
        if any(step.kind == "session_decay" for step in c.adjustments)
    ]
    assert ["session_decay", "rerank_keep", "rerank"] in inherited
    with principal_session(me):
        columns = load_columns(kept)
    columns.verify()
    assert columns.replayed().tolist() == columns.scores.tolist()
    assert 0 < columns.reranked().sum() < len(columns.scores)


def test_rank_fusion_is_reranked_too(me, install) -> None:
    memory.store(me, *TEXTS)
    install(ByLength())
    policy = unstored(ScoringPolicy(formula="rank_fusion", rerank=Reranking(top=4)))
    _, receipt_id = keep(me, policy=policy)
    assert replay(stored(me, receipt_id).receipt).exact


def test_a_receipt_with_the_prefix_out_of_place_is_refused(me, install) -> None:
    memory.store(me, *TEXTS)
    install(ByLength())
    _, receipt_id = keep(me, policy=unstored(ScoringPolicy(rerank=Reranking(top=3, keep=0.25))))
    document = json.loads(stored(me, receipt_id).document)
    verified(*signed(document))
    rows = document["candidates"]
    rows[2], rows[3] = rows[3], rows[2]
    assert not replay(read(*signed(document))).order_equal
    rows[2], rows[3] = rows[3], rows[2]
    rows[0]["adjustments"] = [*rows[0]["adjustments"], {"kind": "kind", "coefficient": 1}]
    with pytest.raises(CorruptReceipt):
        read(*signed(document))
    rows[0]["adjustments"] = rows[0]["adjustments"][1:2]
    with pytest.raises(CorruptReceipt):
        read(*signed(document))


@pytest.mark.parametrize(
    "answer",
    [RuntimeError("words of a text"), [0.5], [0.5] * 99, ["x"] * 8, [float("nan")] * 8, [1.1] * 8, None],
    ids=["raises", "too few", "too many", "no numbers", "nan", "out of range", "nothing"],
)
def test_one_that_fails_leaves_the_order_and_is_reported(me, install, caplog, answer) -> None:
    memory.store(me, *TEXTS)
    from apps.core import clock

    with clock.frozen(clock.now()):
        before = memory.ask(me, "harbour crane inspection")
        install(Broken(answer))
        after = memory.ask(me, "harbour crane inspection")
    assert after.rows == before.rows
    assert (after.reranker, after.errors) == (None, {"reranker": "reranker_failed"})
    assert not after.partial
    assert "words of a text" not in caplog.text


def test_a_search_asks_it_between_its_sessions_and_says_that_it_applied(me, install) -> None:
    library.store(me, *library.CHAIN, library.thread(7, "billing rollback"))
    plain = library.ask(me, "billing rollback")
    assert plain["rerank_applied"] is False
    assert "extension_errors" not in plain
    model = install(ByLength())
    answer = library.ask(me, "billing rollback")
    assert answer["rerank_applied"] is True
    assert model.sessions == [None]
    with principal_session(me):
        receipt = stored_receipt(UUID(answer["retrieval_receipt_id"])).receipt
    assert [c.node_id for c in receipt.candidates] == [row["node_id"] for row in answer["results"]]
    scores = np.array([row["score"] for row in answer["results"]])
    assert (np.diff(scores) <= 0).all()


def test_a_search_whose_reranker_fails_is_recorded_all_the_same(me, install) -> None:
    library.store(me, library.thread(7, "billing rollback"))
    install(Broken(RuntimeError()))
    answer = library.ask(me, "billing rollback")
    assert (answer["rerank_applied"], answer["extension_errors"]) == (False, {"reranker": "reranker_failed"})
    assert answer["trace_id"]
    with principal_session(me):
        receipt = stored_receipt(UUID(answer["retrieval_receipt_id"])).receipt
    assert receipt.explain.errors == {"reranker": "reranker_failed"}


def test_a_name_that_is_not_installed_is_said_at_start_up_and_in_every_answer(me, install) -> None:
    memory.store(me, *TEXTS)
    install(ByLength())
    rerankers.unregister("test")
    assert memory.ask(me, "harbour").errors == {"reranker": "reranker_unknown"}
    (warning,) = checks.reranker_is_there()
    assert warning.id == "retrieval.W001"
    install(ByLength())
    assert checks.reranker_is_there() == []


def test_an_extension_is_made_once_when_it_is_first_asked_for() -> None:
    made = []
    registry: Registry[object] = Registry("memory_platform.nothing_offers_these")
    registry.register("one", lambda: made.append(1) or object())
    assert made == []
    assert registry.get("one") is registry.get("one")
    assert (made, registry.names(), registry.get("two")) == ([1], ("one",), None)
