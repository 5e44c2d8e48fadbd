"""What operations keep goes after its term, not before, whatever cut-off is asked for."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.sessions.models import Session

from apps.core import clock
from apps.core.db.sessions import maintenance_session, staff_session
from apps.operations import expiry, holds, pruning, samples
from apps.operations.models import (
    Alarm,
    Delivery,
    HoldItem,
    JobRun,
    Lease,
    LegalHold,
    Process,
    Sample,
)
from apps.operations.tasks import prune
from tests.support.factories import make_staff, make_world

pytestmark = pytest.mark.django_db(transaction=True)


def at(days: float):
    return clock.now() - timedelta(days=days)


def write_all(days: float) -> None:
    JobRun.objects.create(
        name="tests.task",
        lease_key="tests.task",
        asked_at=at(days),
        started_at=at(days),
        lease_expires_at=at(days),
        finished_at=at(days),
        outcome="succeeded",
    )
    Process.objects.create(kind="web", pid=1, started_at=at(days), seen_at=at(days))
    samples.record([samples.Reading("tests", 1.0)], at=at(days))
    Alarm.objects.create(source=f"tests.{days}", reason="x", opened_at=at(days + 1), resolved_at=at(days))
    Lease.objects.create(key=f"tests.{days}", holder=uuid4(), expires_at=at(days))


@pytest.mark.parametrize(
    ("model", "days"), [(JobRun, 90), (Process, 1), (Sample, 400), (Alarm, 400), (Lease, 1)]
)
def test_rows_go_after_their_term(model, days) -> None:
    write_all(days + 0.01)
    write_all(days - 0.01)
    prune.function()
    assert model.objects.count() == 1


def test_staff_sessions_go_once_they_have_run_out() -> None:
    for key, days in (("over", 0.01), ("valid", -0.01)):
        Session.objects.create(session_key=key, session_data="", expire_date=at(days))
    prune.function()
    assert list(Session.objects.values_list("session_key", flat=True)) == ["valid"]


def test_an_open_alarm_stays_for_ever_and_takes_its_deliveries_when_it_goes(world_destination) -> None:
    for resolved in (None, at(401)):
        alarm = Alarm.objects.create(
            source=f"tests.{resolved}", reason="x", opened_at=at(900), resolved_at=resolved
        )
        Delivery.objects.create(
            destination=world_destination, alarm=alarm, notice="opened", body={}, created_at=at(1)
        )
    prune.function()
    assert Alarm.objects.get().resolved_at is None
    assert Delivery.objects.count() == 1


@pytest.fixture
def world_destination():
    from apps.operations.models import Destination

    world = make_world()
    with staff_session(world.superuser):
        return Destination.objects.create(name="ops", kind="email", address="ops@example.org")


def test_a_cut_off_in_the_future_deletes_nothing_early() -> None:
    write_all(0.5)
    from django.db import connection

    for name in pruning.PRUNED:
        with maintenance_session(), connection.cursor() as cursor:
            cursor.execute(f"SELECT operations_prune_{name}(5000, now() + interval '10 years')")
            assert cursor.fetchone()[0] == 0
    assert JobRun.objects.count() == 1


def test_a_hold_row_stays_1826_days_after_its_release(owner_connection) -> None:
    world = make_world()
    placer = make_staff(world.workspace, "review_retention")
    releaser = make_staff(world.workspace, "review_retention")
    holds.register_kind(holds.HoldKind("tests.thing", "a thing", locate=lambda _: world.workspace.pk))
    try:
        with staff_session(placer):
            hold = holds.place(
                workspace_id=world.workspace.pk,
                reference="case",
                reason="asked",
                items=[("tests.thing", uuid4())],
            )
        with staff_session(releaser):
            holds.release(hold_id=hold.pk, reason="over")
    finally:
        holds.unregister_kind("tests.thing")
    for days, stays in ((1825, True), (1827, False)):
        owner_connection.execute("ALTER TABLE operations_legalhold DISABLE TRIGGER USER")
        owner_connection.execute(
            "UPDATE operations_legalhold SET placed_at = now() - interval '3000 days', "
            "released_at = now() - make_interval(days => %s)",
            [days],
        )
        owner_connection.execute("ALTER TABLE operations_legalhold ENABLE TRIGGER USER")
        prune.function()
        with staff_session(placer):
            assert LegalHold.objects.exists() is stays
            assert HoldItem.objects.exists() is stays


def test_every_own_kind_is_registered_and_one_failure_leaves_the_others_done(monkeypatch) -> None:
    assert {kind.name for kind in expiry.registered(pruning.GROUP)} >= {
        f"prune_{name}" for name in pruning.PRUNED
    }
    write_all(500)
    pruning.register_prune("prune_aaa", "operations_prune_nothing")
    try:
        with pytest.raises(expiry.ExpiryFailed):
            prune.function()
    finally:
        expiry.unregister("prune_aaa")
    assert not JobRun.objects.exists()
