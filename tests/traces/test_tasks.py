"""Upkeep: what the tasks do, count and measure, and that a drift is an alarm."""

from datetime import timedelta

import pytest

from apps.core import clock
from apps.core.db.sessions import principal_session, staff_session
from apps.feedback import tasks as feedback_tasks
from apps.feedback.models import EdgeStrength
from apps.operations import expiry
from apps.operations.models import Alarm, NewestSample
from apps.traces import retention, tasks
from apps.traces.models import Trace
from memory_platform import usage
from tests.feedback.test_outcomes import confirm, walked
from tests.support.factories import make_staff, make_world
from tests.support.traces import climb, issue, ranked, save, source_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def world():
    return make_world()


def test_every_task_may_run_twice_and_counts_what_it_did(world, owner_connection) -> None:
    with principal_session(world.principal):
        saved = save([ranked(issue(7))])
        with clock.frozen(clock.now() - timedelta(days=31)):
            save([ranked(issue(8))])
    owner_connection.execute("UPDATE traces_trace SET expires_at = now() WHERE id = %s", [saved.id])
    assert tasks.expire.function()["traces"] == 1
    assert tasks.expire.function()["traces"] == 0
    assert tasks.erase_text.function()["queries"] == 1
    assert tasks.erase_text.function()["queries"] == 0
    assert sum(tasks.prune_activation.function().values()) == 1
    assert sum(tasks.prune_activation.function().values()) == 0
    assert sum(feedback_tasks.prune_strength.function().values()) == 0
    with principal_session(world.principal):
        assert Trace.objects.get().query is None


def test_what_is_overdue_is_told_and_what_is_drained_is_not(world, owner_connection) -> None:
    with principal_session(world.principal):
        saved = save([])
    assert expiry.status(retention.TRACES).values["expired_traces"] == 0
    owner_connection.execute("UPDATE traces_trace SET expires_at = now() - interval '3 hours'")
    standing = expiry.status(retention.TRACES)
    assert standing.values["expired_traces"] == 1
    assert standing.oldest_overdue_seconds > 3 * 3600 - 1
    assert "expired_traces" in standing.reasons
    expiry.drain(retention.TRACES)
    assert expiry.status(retention.TRACES).values["expired_traces"] == 0
    with principal_session(world.principal), clock.frozen(clock.now() - timedelta(days=40)):
        save([])
    assert expiry.status(retention.TEXTS).values["expired_texts"] == 1
    assert saved.id


def test_the_last_minutes_are_measured_by_workspace(world) -> None:
    with principal_session(world.principal):
        save([ranked(issue(7))], latency_ms=12)
        save([], latency_ms=30)
        with clock.frozen(clock.now() - timedelta(hours=2)):
            save([])
    tasks.measure.function()
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for sample in NewestSample.objects.filter(workspace=world.workspace)
    }
    assert found["traces_recorded", "complete"] == 2
    assert found["traces_latency_ms", "0.95"] == 30
    assert found["traces_oldest_seconds",] == pytest.approx(7200, abs=60)
    assert found["traces_zero_hit",] == 1


def test_the_start_page_draws_older_days_from_what_is_measured(world) -> None:
    with principal_session(world.principal):
        with clock.frozen(clock.now() - timedelta(minutes=62)):
            used, retrieved = save([ranked(issue(7))]), save([ranked(issue(8))])
            save([])
        climb(used.id, source_of(issue(7)))
        save([ranked(issue(9))])
        save([])
    assert retrieved.id != used.id
    tasks.measure.function()
    now = clock.now()
    days = {now.date(): usage.Day()}
    with staff_session(make_staff(world.workspace, "view_traces", "audit")):
        usage._sampled(days, [world.workspace.pk], now - timedelta(hours=1), now.date() + timedelta(days=1))
    day = days[now.date()]
    assert (day.searches, day.zero_hits) == (2, 1)
    assert day.stages == {0: 1, 1: 0, 2: 0, 3: 1}


def test_the_ledger_is_verified_by_rotation_and_a_drift_is_an_alarm_that_changes_nothing(
    world, owner_connection, monkeypatch
) -> None:
    with principal_session(world.principal):
        confirm(*walked())
    assert feedback_tasks.verify_ledger.function() == {"checked": 2, "drifted": 0}
    owner_connection.execute(
        "UPDATE feedback_edge_strength SET strength = strength + 1e-6 WHERE edge_key LIKE '%a%'"
    )
    monkeypatch.setattr(feedback_tasks, "EDGES_A_RUN", 1)
    drifted = [feedback_tasks.verify_ledger.function()["drifted"] for _ in range(3)]
    assert sum(drifted) >= 1
    alarm = Alarm.objects.get(source="feedback.verify_ledger")
    assert (alarm.reason, alarm.workspace_id, alarm.resolved_at) == ("drift", world.workspace.pk, None)
    with principal_session(world.principal):
        assert max(EdgeStrength.objects.values_list("strength", flat=True)) > 0.25
    owner_connection.execute(
        "UPDATE feedback_edge_strength SET strength = strength - 1e-6 WHERE edge_key LIKE '%a%'"
    )
    monkeypatch.setattr(feedback_tasks, "EDGES_A_RUN", 1000)
    for _ in range(3):
        feedback_tasks.verify_ledger.function()
    assert Alarm.objects.get(source="feedback.verify_ledger").resolved_at is not None
