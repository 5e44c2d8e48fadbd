"""Heartbeats: what runs, of which release, and what it knows."""

import time
from datetime import timedelta

import pytest

from apps.core import clock
from apps.operations import heartbeats
from apps.operations.models import Process
from apps.operations.selectors import live_processes

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_reports(monkeypatch):
    monkeypatch.setattr(heartbeats, "_reports", {})


def test_a_beat_says_kind_release_times_and_reports(settings) -> None:
    settings.RELEASE = "abc123"
    heartbeats.register_report("tests", lambda: {"mode": "off"})
    heartbeat = heartbeats.Heartbeat("worker")
    heartbeat.beat()
    heartbeat.beat()
    row = Process.objects.get()
    assert (row.kind, row.release, row.report) == ("worker", "abc123", {"tests": {"mode": "off"}})
    assert row.started_at == heartbeat.started_at <= row.seen_at


def test_unseen_for_sixty_seconds_is_not_live() -> None:
    with clock.frozen(clock.now()) as now:
        heartbeats.Heartbeat("web").beat()
        now.advance(timedelta(seconds=59))
        assert live_processes().count() == 1
        now.advance(timedelta(seconds=1))
        assert live_processes().count() == 0


def test_a_failing_report_stops_nothing_and_says_no_message() -> None:
    def fails() -> dict:
        raise ValueError("user@example.org")

    heartbeats.register_report("broken", fails)
    heartbeats.register_report("whole", lambda: {"n": 1})
    heartbeats.Heartbeat("web").beat()
    assert Process.objects.get().report == {"broken": {"error": "ValueError"}, "whole": {"n": 1}}


@pytest.mark.django_db(transaction=True)
def test_a_thread_beats_until_it_is_stopped_and_takes_its_row_away() -> None:
    heartbeat = heartbeats.Heartbeat("beat", seconds=0.02)
    heartbeat.start()
    deadline = time.monotonic() + 20
    while not Process.objects.filter(seen_at__gt=heartbeat.started_at + timedelta(milliseconds=40)):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    heartbeat.stop()
    assert not Process.objects.exists()
