"""One run at a time, whatever happens to workers; calls in the queue are one run; failures are never swallowed."""

import os
import subprocess
import sys
import threading
from datetime import timedelta
from uuid import uuid4

import pytest
import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.db import OperationalError, connection

from apps.core import clock
from apps.operations import alarms, declarations, heartbeats, leases, runs
from apps.operations.declarations import DeclarationError, Retry, TextInArguments
from apps.operations.models import Alarm, Job, JobRun, Lease
from apps.operations.schedules import every
from apps.operations.tasks_base import task
from tests.conftest import ROOT
from tests.support.tasks import Sent, declared_task

pytestmark = pytest.mark.django_db


def call(*arguments, attempt=0, ago=timedelta(0)) -> runs.Call:
    return runs.Call(declarations.wire_arguments(arguments), clock.now() - ago, attempt)


def test_a_run_leaves_times_outcome_and_counts() -> None:
    with declared_task(lambda: {"deleted": 3}) as declaration:
        assert runs.perform(declaration, call(), Sent()) == {"deleted": 3}
    run = JobRun.objects.get()
    assert (run.outcome, run.counts, run.code) == ("succeeded", {"deleted": 3}, "")
    assert run.finished_at is not None
    assert run.started_at <= run.finished_at < run.lease_expires_at
    assert Job.objects.get(name="tests.task").last_success_at == run.finished_at
    assert not Lease.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_workers_one_takes_the_lease() -> None:
    answers, start = [], threading.Barrier(8)

    def contend() -> None:
        start.wait()
        answers.append(leases.take("tests.task", uuid4(), timedelta(minutes=1)))
        connection.close()

    workers = [threading.Thread(target=contend) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sum(isinstance(answer, leases.Taken) for answer in answers) == 1
    assert all(0 < a.seconds <= 60 for a in answers if isinstance(a, leases.Busy))


def test_a_lease_is_free_again_by_its_time_and_only_its_holder_gives_it_back() -> None:
    first, second = uuid4(), uuid4()
    assert isinstance(leases.take("tests.task", first, timedelta(seconds=-1)), leases.Taken)
    assert isinstance(leases.take("tests.task", second, timedelta(minutes=1)), leases.Taken)
    assert not leases.release("tests.task", first)
    assert leases.release("tests.task", second)


def test_arguments_have_a_lease_of_their_own() -> None:
    one, two = uuid4(), uuid4()
    seen: list[object] = []
    with declared_task(seen.append) as declaration:
        leases.take(declaration.lease_key([str(one)]), uuid4(), timedelta(minutes=1))
        sent = Sent()
        runs.perform(declaration, call(one), sent)
        runs.perform(declaration, call(two), sent)
    assert seen == [two]
    assert [waiting.arguments for waiting, _ in sent.calls] == [[str(one)]]


def test_a_held_lease_is_waited_for_or_skipped_as_declared() -> None:
    leases.take("tests.task", uuid4(), timedelta(minutes=1))
    for misfire, waits in (("run_once", 1), ("skip", 0)):
        sent = Sent()
        with declared_task(dict, misfire=misfire, schedule=every(minutes=5)) as declaration:
            assert runs.perform(declaration, call(), sent) is None
        assert len(sent.calls) == waits
        assert all(0 < seconds <= 61 for _, seconds in sent.calls)
    assert not JobRun.objects.exists()


def test_calls_that_waited_in_the_queue_are_one_run() -> None:
    ran = []
    with declared_task(lambda: ran.append(1), schedule=every(minutes=15)) as declaration:
        for minutes in (60, 45, 30, 15):
            runs.perform(declaration, call(ago=timedelta(minutes=minutes)), Sent())
        assert len(ran) == 1
        runs.perform(declaration, call(ago=timedelta(seconds=-1)), Sent())
    assert len(ran) == 2


def test_a_run_whose_time_has_passed_is_skipped_or_run_once_as_declared() -> None:
    ran = []
    for misfire in ("skip", "run_once"):
        with declared_task(
            lambda misfire=misfire: ran.append(misfire), misfire=misfire, schedule=every(minutes=5)
        ) as declaration:
            runs.perform(declaration, call(ago=timedelta(minutes=6)), Sent())
    assert ran == ["run_once"]


def test_a_run_that_may_have_begun_before_the_call_does_not_stand_for_it() -> None:
    ran = []
    with declared_task(lambda: ran.append(1)) as declaration:
        for seconds in (4, 4, 6):
            runs.perform(declaration, call(ago=timedelta(seconds=seconds)), Sent())
    assert len(ran) == 2


@pytest.mark.parametrize(("misfire", "waits"), [("run_once", 1), ("skip", 0)])
@pytest.mark.parametrize("away", ["begin", "finish"])
def test_without_a_database_a_call_waits_in_the_broker(monkeypatch, misfire, waits, away) -> None:
    def is_away(*arguments: object, **more: object) -> None:
        raise OperationalError("host 10.0.0.7 said no")

    sent = Sent()
    monkeypatch.setattr(connection, "close", lambda: None)
    with declared_task(dict, misfire=misfire) as declaration:
        monkeypatch.setattr(*{"begin": (leases, "take"), "finish": (alarms, "resolve")}[away], is_away)
        assert runs.perform(declaration, call(), sent) is None
    assert len(sent.calls) == waits


class Broken(Exception):
    pass


def test_a_failure_is_recorded_raised_alarmed_and_closed_by_the_next_success() -> None:
    secret = "user@example.org said something"

    def fail() -> None:
        raise Broken(secret)

    with declared_task(fail) as declaration, pytest.raises(runs.JobFailed) as raised:
        runs.perform(declaration, call(), Sent())
    assert secret not in str(raised.value)
    run, job = JobRun.objects.get(), Job.objects.get()
    assert (run.outcome, run.code) == ("failed", "Broken")
    assert (job.consecutive_failures, job.last_failure_code) == (1, "Broken")
    alarm = Alarm.objects.get(source="tests.task", reason="failed")
    assert alarm.details == {"code": "Broken"}
    assert alarm.resolved_at is None
    with declared_task(lambda: None) as declaration:
        runs.perform(declaration, call(), Sent())
    assert not Alarm.objects.filter(resolved_at=None).exists()
    assert Job.objects.get().consecutive_failures == 0


def test_retries_come_after_their_delays_and_alarm_only_when_they_are_used_up() -> None:
    def fail() -> None:
        raise Broken

    with declared_task(fail, retry=Retry((10, 60))) as declaration:
        for attempt, delay in ((0, 10), (1, 60)):
            sent, first = Sent(), call(attempt=attempt)
            with pytest.raises(runs.JobFailed):
                runs.perform(declaration, first, sent)
            assert sent.calls == [(runs.Call([], first.sent_at, attempt + 1), delay)]
            assert not Alarm.objects.exists()
        sent = Sent()
        with pytest.raises(runs.JobFailed):
            runs.perform(declaration, call(attempt=2), sent)
    assert sent.calls == []
    assert Alarm.objects.filter(reason="failed").count() == 1


def test_a_soft_limit_has_a_code_of_its_own() -> None:
    def too_long() -> None:
        raise SoftTimeLimitExceeded

    with declared_task(too_long) as declaration, pytest.raises(runs.JobFailed):
        runs.perform(declaration, call(), Sent())
    assert JobRun.objects.get().code == "soft_limit"


def abandoned(declaration, *, process_id=None, lease=timedelta(seconds=-1), attempt=0, started=timedelta(0)):
    """The row that a killed worker leaves."""
    run_id, key = uuid4(), declaration.lease_key([])
    leases.take(key, run_id, timedelta(minutes=5))
    return JobRun.objects.create(
        id=run_id,
        name=declaration.name,
        lease_key=key,
        attempt=attempt,
        process_id=process_id,
        asked_at=clock.now() - timedelta(minutes=3),
        started_at=clock.now() - started,
        lease_expires_at=clock.now() + lease,
    )


def test_a_killed_run_is_found_by_its_lease_and_sent_again() -> None:
    sent = []
    with declared_task(lambda: None) as declaration:
        Job.objects.create(name=declaration.name)
        run = abandoned(declaration)
        assert runs.sweep_lost(lambda _, again: sent.append(again)) == 1
        assert runs.sweep_lost(lambda _, again: sent.append(again)) == 0
    run.refresh_from_db()
    assert (run.outcome, run.code) == ("lost", "lost")
    assert sent == [runs.Call([], run.asked_at, 1)]
    assert not Lease.objects.exists()
    assert Job.objects.get().last_failure_code == "lost"


def test_a_run_of_a_dead_process_is_lost_before_its_lease_ends() -> None:
    heartbeat = heartbeats.Heartbeat("worker")
    heartbeat.beat()
    with declared_task(lambda: None, misfire="skip", schedule=every(minutes=5)) as declaration:
        for process, name in ((heartbeat.id, "alive"), (uuid4(), "dead")):
            run = abandoned(
                declaration, process_id=process, lease=timedelta(minutes=5), started=timedelta(minutes=2)
            )
            JobRun.objects.filter(pk=run.pk).update(code=name)
        assert runs.sweep_lost(lambda _, again: pytest.fail("skip is not sent again")) == 1
    assert JobRun.objects.get(outcome="running").code == "alive"


def test_a_run_that_kills_its_worker_every_time_alarms_and_ends() -> None:
    with declared_task(lambda: None) as declaration:
        abandoned(declaration, attempt=2)
        assert runs.sweep_lost(lambda _, again: pytest.fail("must not be sent again")) == 1
    assert Alarm.objects.get(source="tests.task", reason="lost").details == {"attempts": 3}


def test_ids_travel_as_text_and_arrive_as_ids() -> None:
    one = uuid4()
    seen: list[object] = []
    with declared_task(lambda *given: seen.extend(given)) as declaration:
        runs.perform(declaration, call(one, 7, None, [one, True]), Sent())
    assert seen == [one, 7, None, [one, True]]


@pytest.mark.parametrize("text", ["what is the role?", "user@example.org", b"bytes", 1.5, {"query": "text"}])
def test_text_is_refused_where_a_message_is_made_and_not_shown(text) -> None:
    name = f"tests.refuses_{type(text).__name__}_{len(str(text))}"

    @task(
        name=name,
        lease=timedelta(minutes=2),
        soft_limit=timedelta(seconds=20),
        misfire="run_once",
    )
    def refuses(*given: object) -> None:
        pass

    try:
        for send in (lambda: refuses.delay(text), lambda: refuses.apply_async(kwargs={"query": text})):
            with pytest.raises(TextInArguments) as raised:
                send()
            assert str(text) not in str(raised.value)
    finally:
        declarations.remove(name)


def test_limits_are_below_the_lease_and_the_lease_below_redelivery() -> None:
    for broken in (
        {"lease": timedelta(minutes=2)},
        {"soft_limit": timedelta(minutes=2)},
        {"lease": timedelta(minutes=55)},
        {"schedule": every(minutes=5), "freshness": None},
    ):
        with pytest.raises(DeclarationError), declared_task(lambda: None, **broken):
            pass


def test_every_declared_task_has_lease_limits_misfire_and_freshness() -> None:
    import apps.operations.tasks  # noqa: F401

    found = list(declarations.declared())
    assert {"operations.watch", "operations.verify_audit", "operations.prune"} <= {d.name for d in found}
    for declaration in found:
        declaration.check()
        if declaration.schedule is not None:
            assert declaration.freshness is not None
            assert declaration.freshness >= declaration.schedule.interval


def test_a_run_carries_the_id_of_the_request_that_set_it_off() -> None:
    seen = []

    @task(
        name="tests.carries",
        lease=timedelta(minutes=2),
        soft_limit=timedelta(seconds=20),
        misfire="run_once",
    )
    def carries() -> None:
        seen.append(structlog.contextvars.get_contextvars().get("request_id"))

    try:
        carries.apply(headers={"memory_request_id": "one"})
        carries.apply()
    finally:
        declarations.remove("tests.carries")
    assert seen == ["one", None]


def test_every_process_knows_the_tasks_of_every_app() -> None:
    known = subprocess.run(
        [
            *(sys.executable, "-c"),
            "import django; django.setup(); from apps.operations.selectors import freshness\n"
            "from apps.operations.declarations import declared; print(*[d.name for d in declared()])",
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "memory_platform.settings"},
    )
    assert {"operations.watch", "operations.prune"} <= set(known.stdout.split())
