"""Query analysis: a port of its own version, which the policy must name, and which shifts nothing by itself."""

from datetime import UTC, datetime, timedelta

import pytest

from apps.core import clock
from apps.graph.services import PassageItem
from apps.retrieval.extensions import Reading, analyses
from apps.retrieval.policy import ScoringPolicy, unstored
from apps.retrieval.receipts.replay import replay
from apps.retrieval.wording import EnglishWording
from tests.retrieval.test_receipts import keep, stored
from tests.support import memory
from tests.support.factories import make_world

pytestmark = pytest.mark.django_db

AT = datetime(2026, 6, 10, 15, tzinfo=UTC)
MIDNIGHT = datetime(2026, 6, 10, tzinfo=UTC)


@pytest.fixture
def me():
    return make_world().principal


@pytest.mark.parametrize(
    ("query", "current", "since", "until"),
    [
        ("how is billing configured", False, None, None),
        ("what is the CURRENT price", True, None, None),
        ("which key is used now", True, None, None),
        ("nowhere to be found", False, None, None),
        ("what failed yesterday", False, MIDNIGHT - timedelta(days=1), MIDNIGHT),
        ("what failed today", True, MIDNIGHT, None),
        ("who called last week", False, AT - timedelta(days=7), None),
        ("work of the past month", False, AT - timedelta(days=31), None),
        ("plans of this year", False, AT - timedelta(days=366), None),
        ("what did we recently decide", False, AT - timedelta(days=14), None),
        ("", False, None, None),
    ],
)
def test_what_english_wording_says(query, current, since, until) -> None:
    found = EnglishWording().read(query, at=AT)
    assert found.current is current
    assert (found.window[0] if found.window else None) == since
    if until:
        assert found.window[1] == until
    elif since:
        assert found.window[1] > AT


def items():
    def edition(commit, days, text):
        return PassageItem(
            identity=[commit, "a.py"],
            type="diff",
            repo="acme/app",
            path="a.py",
            text=text,
            updated_at=clock.iso(clock.now() - timedelta(days=days)),
        )

    return [
        edition("c1", 40, "price list price"),
        edition("c2", 2, "price"),
        PassageItem(identity="d", text="price", event_at=clock.now() - timedelta(days=3)),
        PassageItem(identity="e", text="price", event_at=clock.now() - timedelta(days=300)),
    ]


def steps(me, query, **policy):
    """Steps by node of the answer, folded rows' as far as they represent."""
    found = memory.ask(me, query, policy=unstored(ScoringPolicy(**policy)), limit=50)
    return found, {row.node_id: [(s.kind, s.coefficient) for s in row.adjustments] for row in found.rows}


def test_without_an_analysis_constants_alone_shift_nothing(me) -> None:
    memory.store(me, *items())
    with clock.frozen(clock.now()):
        plain, _ = steps(me, "current price last week")
        found, applied = steps(me, "current price last week", temporal_bonus=0.5, current_update=2.0)
        inert, _ = steps(me, "current price last week", query_analysis="wording")
    assert not any(applied.values())
    assert [row.score for row in plain.rows] == [row.score for row in found.rows]
    assert [row.score for row in plain.rows] == [row.score for row in inert.rows], "the defaults are inert"
    assert (plain.query_analysis, found.query_analysis, inert.query_analysis) == (None, None, "wording-1")


def test_the_bonus_goes_to_rows_of_the_time_spoken_of(me) -> None:
    ids = memory.store(me, *items())
    _, applied = steps(me, "price last week", query_analysis="wording", temporal_bonus=0.25)
    assert applied[ids[2]] == [("temporal_bonus", 0.25)]
    assert applied[ids[3]] == []
    _, untimed = steps(me, "price", query_analysis="wording", temporal_bonus=0.25)
    assert not any(untimed.values())


def test_the_factor_goes_to_the_latest_edition_where_the_present_is_asked_for(me) -> None:
    ids = memory.store(me, *items())
    _, applied = steps(me, "current price", query_analysis="wording", current_update=1.5)
    assert applied == {ids[1]: [("current_update", 1.5)], ids[2]: [], ids[3]: []}, (
        "it now represents its file"
    )
    _, timeless = steps(me, "price", query_analysis="wording", current_update=1.5)
    assert not any(timeless.values())


def test_the_version_is_in_the_receipt_and_replay_asks_no_analysis(me, monkeypatch) -> None:
    memory.store(me, *items())
    policy = unstored(
        ScoringPolicy(
            query_analysis="wording",
            temporal_bonus=0.3,
            current_update=1.7,
            relevance_floor=1.5,
            epistemic={"observed": 0.9},
        )
    )
    _, receipt_id = keep(me, "current price last week", policy=policy)
    _, plain_id = keep(me, "current price last week")
    monkeypatch.setattr(EnglishWording, "read", lambda *given, **named: pytest.fail("asked"))
    receipt = stored(me, receipt_id).receipt
    assert replay(receipt).exact
    assert receipt.policy.query_analysis == "wording-1"
    assert stored(me, plain_id).receipt.policy.query_analysis is None
    kinds = [step.kind for c in receipt.candidates for step in c.adjustments]
    assert {"epistemic", "temporal_bonus", "relevance_cap", "current_update"} <= set(kinds)
    for candidate in receipt.candidates:
        order = ["epistemic", "kind", "temporal_bonus", "relevance_cap", "current_update", "session_decay"]
        places = [order.index(step.kind) for step in candidate.adjustments]
        assert places == sorted(places)


def test_another_analysis_may_be_installed(me) -> None:
    ids = memory.store(me, *items())

    class Always:
        version = "always-7"

        def read(self, query, *, at):
            return Reading(window=(at - timedelta(days=400), at))

    analyses.register("always", Always)
    try:
        found, applied = steps(me, "price", query_analysis="always", temporal_bonus=0.1)
    finally:
        analyses.unregister("always")
    assert found.query_analysis == "always-7"
    assert applied[ids[3]] == [("temporal_bonus", 0.1)]


@pytest.mark.parametrize(
    ("installed", "code"), [(False, "query_analysis_unknown"), (True, "query_analysis_failed")]
)
def test_one_that_is_missing_or_fails_changes_nothing_and_is_reported(me, installed, code) -> None:
    memory.store(me, *items())

    class Broken:
        version = "broken"

        def read(self, query, *, at):
            raise RuntimeError

    if installed:
        analyses.register("broken", Broken)
    try:
        with clock.frozen(clock.now()):
            plain, _ = steps(me, "current price")
            found, _ = steps(me, "current price", query_analysis="broken", current_update=2.0)
    finally:
        analyses.unregister("broken")
    assert [row.score for row in found.rows] == [row.score for row in plain.rows]
    assert (found.query_analysis, found.errors, found.partial) == (None, {"query_analysis": code}, False)
