"""The strength of an edge is the sum of its active credits, whatever happens in whatever order."""

from datetime import timedelta

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.core import clock
from apps.core.db.sessions import principal_session
from apps.feedback.models import Credit, EdgeStrength
from apps.traces.decay import decay
from apps.traces.models import ReceiptKind
from apps.traces.services.erase import erase_trace
from tests.feedback.test_outcomes import confirm, reverse
from tests.support.factories import make_world
from tests.support.traces import climb, graph_row, page, save, source_of, walk

pytestmark = pytest.mark.django_db

PATHS = (walk("a", "b", "c"), walk("a", "b"), walk("c", "b"), walk("d", "c", "b"))
STEPS = st.one_of(
    st.tuples(st.just("confirm"), st.integers(0, len(PATHS) - 1)),
    st.tuples(st.just("burst"), st.integers(0, len(PATHS) - 1)),
    st.tuples(st.just("reverse"), st.integers(0, 30)),
    st.tuples(st.just("erase"), st.integers(0, 30)),
    st.tuples(st.just("time"), st.integers(-7200, 20_000)),
)


class Undone(Exception):
    pass


def act(step, confirmed, frozen):
    kind, value = step
    if kind == "time":
        frozen.advance(timedelta(seconds=value))
        return
    if kind in {"confirm", "burst"}:
        for _ in range(1 if kind == "confirm" else 22):
            path = PATHS[value]
            end = page(path.nodes[-1].slug)
            saved = save([graph_row(end, [path])])
            climb(saved.id, source_of(end))
            confirmed.append((saved.id, confirm(saved.id, source_of(end))["receipt_id"]))
        return
    if not confirmed:
        return
    trace, receipt = confirmed[value % len(confirmed)]
    if kind == "reverse":
        reverse(trace, receipt, ReceiptKind.ROLLED_BACK, key=f"r{receipt}")
    else:
        erase_trace(trace_id=trace)
        confirmed.remove((trace, receipt))


def check():
    for edge in EdgeStrength.objects.all():
        for later in (timedelta(0), timedelta(minutes=17), timedelta(days=1)):
            at = max(clock.now(), edge.updated_at) + later
            lent = sum(
                decay(credit.delta, credit.credited_at, at, 3600.0)
                for credit in Credit.objects.filter(edge_key=edge.edge_key, active=True)
            )
            assert abs(decay(edge.strength, edge.updated_at, at, 3600.0) - lent) < 1e-9
            assert edge.strength <= 5


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, min_size=3, max_size=14))
def test_any_interleaving_of_confirming_reversing_erasing_and_time_keeps_the_sum(steps) -> None:
    world = make_world()
    # The clock may step back far, but no trace may reach its end, which the database's own clock decides.
    with clock.frozen(clock.now()) as frozen, principal_session(world.principal):
        confirmed = []
        for step in steps:
            act(step, confirmed, frozen)
            check()


def test_a_failed_outcome_leaves_the_ledger_as_it_was() -> None:
    world = make_world()
    with principal_session(world.principal):
        saved = save([graph_row(page("c"), [PATHS[0]])])
        climb(saved.id, source_of(page("c")))

        def fail_afterwards() -> None:
            with transaction.atomic():
                confirm(saved.id, source_of(page("c")))
                raise Undone

        with pytest.raises(Undone):
            fail_afterwards()
        assert not Credit.objects.exists()
        assert not EdgeStrength.objects.exists()
