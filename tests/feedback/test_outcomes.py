"""Confirmations lend strength to walked edges; reversals take back exactly what is left."""

from datetime import timedelta

import pytest

from apps.core import clock
from apps.core.db.sessions import principal_session
from apps.core.problems import Problem
from apps.feedback.models import Credit, EdgeStrength
from apps.feedback.selectors import strengths
from apps.feedback.services.outcomes import Outcome, record_outcome
from apps.traces.models import ReceiptKind
from tests.support.traces import climb, graph_row, issue, mention, page, ranked, save, source_of, walk

pytestmark = pytest.mark.django_db

HALF_LIFE = timedelta(hours=1)


@pytest.fixture
def frozen():
    with clock.frozen(clock.now()) as at:
        yield at


def walked(path=None):
    """A used graph row at the end of a → b → c; (trace id, source id)."""
    saved = save([ranked(page("a")), graph_row(page("c"), [path or walk("a", "b", "c")])])
    source = source_of(page("c"))
    climb(saved.id, source)
    return saved.id, source


def confirm(trace_id, *sources, key=None):
    outcome = Outcome(ReceiptKind.CONFIRMED, "fix verified", source_ids=sources)
    return record_outcome(trace_id=trace_id, idempotency_key=key or f"c{trace_id}", outcome=outcome)


def reverse(trace_id, confirmation, kind=ReceiptKind.CORRECTED, key=None):
    outcome = Outcome(kind, "was wrong", confirmation_id=confirmation)
    return record_outcome(trace_id=trace_id, idempotency_key=key or f"r{confirmation}", outcome=outcome)


def total():
    found = strengths([mention("a", "b").key, mention("b", "c").key], as_of=clock.now(), half_life_s=3600.0)
    return sum(found.values())


def test_a_confirmation_credits_the_mentions_of_the_path_and_no_shortcut(world, frozen) -> None:
    with principal_session(world.principal):
        trace, source = walked()
        receipt = confirm(trace, source)
        assert len(receipt["changes"]) == 2
        assert {change["reason"] for change in receipt["changes"]} == {"confirmed_path"}
        assert receipt["saved_sources"][0]["paths"][0] == [
            mention("a", "b").shown(),
            mention("b", "c").shown(),
        ]
        assert receipt["reason"] == "fix verified"
        assert set(EdgeStrength.objects.values_list("edge_key", flat=True)) == {
            mention("a", "b").key,
            mention("b", "c").key,
        }
        assert total() == pytest.approx(0.5)


def test_a_trace_credits_an_edge_once(world, frozen) -> None:
    with principal_session(world.principal):
        trace, source = walked()
        first = confirm(trace, source)
        assert confirm(trace, source) == first
        again = confirm(trace, source, key="other")
        assert [change["reason"] for change in again["changes"]] == ["trace_already_credited"] * 2
        assert again["non_applied_reason"] is None
        assert total() == pytest.approx(0.5)


def test_strength_decays_adds_and_gives_back_only_what_is_left(world, frozen) -> None:
    with principal_session(world.principal):
        trace, source = walked()
        first = confirm(trace, source)
        frozen.advance(HALF_LIFE)
        assert total() == pytest.approx(0.25)
        other, same = walked()
        confirm(other, same)
        assert total() == pytest.approx(0.75)
        reversal = reverse(trace, first["receipt_id"])
        assert [change["reversed_delta"] for change in reversal["changes"]] == [pytest.approx(0.125)] * 2
        assert reversal["saved_sources"] == []
        assert total() == pytest.approx(0.5)
        assert reverse(trace, first["receipt_id"]) == reversal


def test_a_full_edge_gains_nothing_and_headroom_is_not_filled_later(world, frozen) -> None:
    with principal_session(world.principal):
        receipts = []
        for _ in range(21):
            trace, source = walked()
            receipts.append((trace, confirm(trace, source)))
        assert total() == pytest.approx(10)
        last_trace, last = receipts[-1]
        assert [(c["delta"], c["applied"], c["reason"]) for c in last["changes"]] == [
            (0, False, "strength_cap_reached")
        ] * 2
        rolled = reverse(last_trace, last["receipt_id"], ReceiptKind.ROLLED_BACK)
        assert [change["reversed_delta"] for change in rolled["changes"]] == [0, 0]
        assert total() == pytest.approx(10)
        reverse(receipts[0][0], receipts[0][1]["receipt_id"])
        assert total() == pytest.approx(9.5)


def test_a_lexical_source_gives_no_credit(world, frozen) -> None:
    with principal_session(world.principal):
        saved = save([ranked(issue(7)), graph_row(page("b"), [walk("a", "b")])])
        lexical, graph = source_of(issue(7)), source_of(page("b"))
        climb(saved.id, lexical)
        climb(saved.id, graph)
        alone = confirm(saved.id, lexical, key="alone")
        assert alone["changes"] == []
        assert alone["non_applied_reason"] == "no_graph_path"
        both = confirm(saved.id, lexical, graph, graph, key="both")
        assert [change["edge"] for change in both["changes"]] == [mention("a", "b").shown()]
        assert both["non_applied_reason"] is None


def test_an_edge_of_several_rows_and_paths_is_credited_once(world, frozen) -> None:
    with principal_session(world.principal):
        paths = [walk("a", "b", "d"), walk("a", "c", "d")]
        saved = save([graph_row(page("d"), paths), graph_row(page("b"), [walk("a", "b")], 1)])
        for slug in ("d", "b"):
            climb(saved.id, source_of(page(slug)))
        receipt = confirm(saved.id, source_of(page("d")), source_of(page("b")))
        credited = [(change["edge"]["src"], change["edge"]["dst"]) for change in receipt["changes"]]
        assert credited == [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
        assert set(EdgeStrength.objects.values_list("strength", flat=True)) == {0.25}


def test_walking_backward_credits_the_stored_direction(world, frozen) -> None:
    with principal_session(world.principal):
        trace, source = walked(walk("a", "b", "c", edges=[mention("b", "a"), mention("b", "c")]))
        confirm(trace, source)
        assert set(EdgeStrength.objects.values_list("edge_key", flat=True)) == {
            mention("b", "a").key,
            mention("b", "c").key,
        }


def test_a_second_reversal_finds_nothing_and_the_trace_never_earns_again(world, frozen) -> None:
    with principal_session(world.principal):
        trace, source = walked()
        first = confirm(trace, source)
        reverse(trace, first["receipt_id"])
        again = reverse(trace, first["receipt_id"], key="second")
        assert (again["changes"], again["non_applied_reason"]) == ([], "no_active_credits")
        reconfirmed = confirm(trace, source, key="re")
        assert {change["reason"] for change in reconfirmed["changes"]} == {"trace_already_credited"}
        assert total() == 0
        assert not Credit.objects.filter(active=True).exists()


def test_only_a_confirmation_of_the_same_trace_is_reversed(world, frozen) -> None:
    with principal_session(world.principal):
        trace, source = walked()
        other, _ = walked()
        first = confirm(trace, source)
        reversal = reverse(trace, first["receipt_id"])
        use = climb(other, source_of(page("a")))
        for where, what in (
            (other, first["receipt_id"]),
            (trace, reversal["receipt_id"]),
            (other, use["receipt_id"]),
            (trace, "not-an-id"),
        ):
            with pytest.raises(Problem) as refused:
                reverse(where, what, key="x")
            assert refused.value.shown_code == "unknown_confirmation"


@pytest.mark.parametrize(
    ("kind", "arguments", "code"),
    [
        (ReceiptKind.CONFIRMED, {}, "source_ids_required"),
        (ReceiptKind.CONFIRMED, {"source_ids": ("s",), "confirmation_id": "c"}, "source_ids_required"),
        (ReceiptKind.CORRECTED, {}, "confirmation_id_required"),
        (ReceiptKind.ROLLED_BACK, {"source_ids": ("s",), "confirmation_id": "c"}, "confirmation_id_required"),
    ],
)
def test_each_outcome_takes_its_own_argument_alone(world, kind, arguments, code) -> None:
    with principal_session(world.principal):
        trace, _ = walked()
        with pytest.raises(Problem) as refused:
            record_outcome(trace_id=trace, idempotency_key="k", outcome=Outcome(kind, "why", **arguments))
        assert refused.value.shown_code == code


def test_a_source_is_confirmed_only_once_it_was_used_in_this_trace(world, frozen) -> None:
    with principal_session(world.principal):
        walked()
        saved = save([graph_row(page("c"), [walk("a", "b", "c")])])
        with pytest.raises(Problem) as refused:
            confirm(saved.id, source_of(page("c")))
        assert refused.value.shown_code == "used_source_required"
        with pytest.raises(Problem) as refused:
            confirm(saved.id, source_of(page("zzz")), source_of(page("c")))
        assert refused.value.shown_code == "unknown_source"


def test_a_reversal_touches_neither_stage_nor_activation(world, frozen) -> None:
    from apps.traces.models import Activation, Use

    with principal_session(world.principal):
        trace, source = walked()
        before = list(Activation.objects.order_by("id").values()), list(Use.objects.order_by("id").values())
        first = confirm(trace, source)
        reverse(trace, first["receipt_id"])
        after = list(Activation.objects.order_by("id").values()), list(Use.objects.order_by("id").values())
    assert before == after
