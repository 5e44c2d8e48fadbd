"""Uses climb one stage at a time, all of a batch or none."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from apps.core import clock
from apps.core.db.sessions import principal_session
from apps.core.ids import uuid7
from apps.core.problems import Problem
from apps.traces.activation import read_activation
from apps.traces.decay import decay
from apps.traces.models import ActionReceipt, Activation, Trace, Use
from tests.support.factories import make_principal, make_world
from tests.support.statements import sent
from tests.support.traces import LADDER, climb, issue, ranked, save, source_of

pytestmark = pytest.mark.django_db
SOURCE = source_of(issue(7))


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def frozen():
    with clock.frozen(clock.now()) as at:
        yield at


def activation(source=SOURCE):
    return read_activation([source], as_of=clock.now(), half_life_s=3600.0)[source]


def refusal(call, *args, **kwargs):
    with pytest.raises(Problem) as refused:
        call(*args, **kwargs)
    return refused.value.shown_code


def test_a_ladder_adds_up_and_a_replay_under_a_new_key_changes_nothing(world, frozen) -> None:
    with principal_session(world.principal):
        saved = save([ranked(issue(7))])
        receipt = climb(saved.id, SOURCE)
        shown = [(change["applied"], change["activation"]["usage"]) for change in receipt["changes"]]
        assert shown == [(True, pytest.approx(0.2)), (True, pytest.approx(0.7)), (True, pytest.approx(1.7))]
        again = climb(saved.id, SOURCE)
        assert [change["applied"] for change in again["changes"]] == [False, False, False]
        assert again["non_applied_reason"] is None
        assert activation().usage == pytest.approx(1.7)
        use = Use.objects.get()
        assert (use.stage, use.selected_at, use.validated_at, use.used_at) == (3, *[frozen.at] * 3)


def test_the_same_key_gives_the_same_receipt_and_another_payload_conflicts(world) -> None:
    with principal_session(world.principal):
        saved = save([ranked(issue(7))])
        first = climb(saved.id, SOURCE, "selected", key="k1")
        assert climb(saved.id, SOURCE, "selected", key="k1") == first
        assert refusal(climb, saved.id, SOURCE, "validated", key="k1") == "idempotency_conflict"
        assert ActionReceipt.objects.count() == 1


def test_the_key_is_looked_up_before_the_trace(world) -> None:
    with principal_session(world.principal):
        saved = save([ranked(issue(7))])
        climb(saved.id, SOURCE, "selected", key="k1")
        assert refusal(climb, uuid7(), SOURCE, "selected", key="k1") == "idempotency_conflict"
        assert refusal(climb, uuid7(), SOURCE, "selected", key="k2") == "unknown_trace"


def test_a_refused_entry_leaves_everything_as_it_was_and_the_key_free(world, frozen) -> None:
    from apps.traces.schemas import UseEntry
    from apps.traces.services.uses import record_uses

    with principal_session(world.principal):
        saved = save([ranked(issue(7))])
        climb(saved.id, SOURCE, "selected")
        uses = [
            UseEntry(source_id=SOURCE, stage="validated"),
            UseEntry(source_id=source_of(issue(8)), stage="selected"),
        ]

        def batch():
            with transaction.atomic():
                record_uses(trace_id=saved.id, idempotency_key="k9", uses=uses)

        assert refusal(batch) == "unknown_source"
        assert Use.objects.get().stage == 1
        assert activation().usage == pytest.approx(0.2)
        assert ActionReceipt.objects.count() == 1
        assert climb(saved.id, SOURCE, "validated", key="k9")["changes"][0]["applied"]


def test_a_jump_is_refused(world) -> None:
    with principal_session(world.principal):
        saved = save([ranked(issue(7))])
        climb(saved.id, SOURCE, "selected")
        assert refusal(climb, saved.id, SOURCE, "used") == "stage_order_violation"


def test_a_source_climbs_and_earns_in_each_trace(world, frozen) -> None:
    with principal_session(world.principal):
        for _ in range(2):
            climb(save([ranked(issue(7))]).id, SOURCE)
        assert activation().usage == pytest.approx(3.4)
        assert activation().retrieved == pytest.approx(0.2)


def test_reading_later_decays_and_writes_nothing(world, frozen) -> None:
    with principal_session(world.principal):
        start = clock.now()
        climb(save([ranked(issue(7))]).id, SOURCE)
        frozen.advance(timedelta(hours=1))
        read = activation()
        assert (read.retrieved, read.usage) == (pytest.approx(0.05), pytest.approx(0.85))
        assert (read.updated_at, read.as_of) == (start, start + timedelta(hours=1))
        frozen.advance(timedelta(hours=-1, milliseconds=-1))
        assert activation().retrieved == pytest.approx(0.1)
        row = Activation.objects.get()
        assert (row.retrieved, row.updated_at) == (pytest.approx(0.1), start)


def test_a_clock_that_steps_back_decays_nothing_and_moves_nothing_back(world, frozen) -> None:
    start = clock.now()
    assert decay(10, start, start - timedelta(seconds=1), 3600) == 10
    with principal_session(world.principal):
        climb(save([ranked(issue(7))]).id, SOURCE)
        frozen.advance(timedelta(hours=-1))
        save([ranked(issue(7))])
        row = Activation.objects.get()
        assert (row.retrieved, row.usage) == (pytest.approx(0.2), pytest.approx(1.7))
        assert row.updated_at == start


def test_both_channels_stop_at_their_cap(world, frozen) -> None:
    with principal_session(world.principal):
        for _ in range(110):
            climb(save([ranked(issue(7))]).id, SOURCE)
        row = Activation.objects.get()
        assert (row.retrieved, row.usage) == (10, 10)


@pytest.mark.parametrize("value", ["NaN", "10.1", "-0.1", "Infinity"])
def test_the_database_refuses_values_out_of_bounds(world, value) -> None:
    with principal_session(world.principal):
        save([ranked(issue(7))])
        with pytest.raises(IntegrityError), transaction.atomic():
            Activation.objects.update(usage=float(value))


@pytest.mark.parametrize(
    ("hours", "value"), [(0, 10.0), (1, 1e-250), (-5, 3.0), (7.3, 2.5), (250, 10.0), (2e4, 1e-9)]
)
def test_python_and_both_forms_of_sql_decay_alike(world, hours, value, admin_connection) -> None:
    from apps.traces.decay import decay_sql

    since = clock.now()
    until = since + timedelta(hours=hours)
    expected = decay(value, since, until, 3600.0)
    expression = decay_sql("%(v)s::float8", "%(a)s::timestamptz", "%(b)s::timestamptz", "%(h)s::float8")
    params = {"v": value, "a": since, "b": until, "h": 3600.0}
    for sql in (expression, "public.traces_decay(%(v)s::float8, %(a)s, %(b)s, %(h)s::float8)"):
        (found,) = admin_connection.execute(f"SELECT {sql}", params).fetchone()
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-300)


def test_another_principal_knows_neither_trace_nor_activation(world) -> None:
    with principal_session(world.principal):
        saved = save([ranked(issue(7))])
    with principal_session(make_principal(world.workspace)):
        assert refusal(climb, saved.id, SOURCE, "selected") == "unknown_trace"
        assert not Trace.objects.exists()
        assert activation().updated_at is None
    assert LADDER == ("selected", "validated", "used")


def test_a_batch_costs_the_same_number_of_queries_for_one_use_and_for_a_hundred(world) -> None:
    from apps.traces.schemas import UseEntry
    from apps.traces.services.uses import record_uses

    with principal_session(world.principal):
        saved = save([ranked(issue(number), number) for number in range(1, 101)])
        sources = [source_of(issue(number)) for number in range(1, 101)]
        counts = []
        for key, named in (("one", sources[:1]), ("all", sources[1:])):
            uses = [UseEntry(source_id=source, stage="selected") for source in named]
            with sent() as statements:
                record_uses(trace_id=saved.id, idempotency_key=key, uses=uses)
            counts.append(len(statements))
        assert counts[0] == counts[1] <= 12
