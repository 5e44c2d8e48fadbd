"""Health and metrics: each broken part shows, and nobody learns more than a code."""

from datetime import timedelta
from uuid import uuid4

import pytest
import redis
from prometheus_client.parser import text_string_to_metric_families

from apps.core import clock
from apps.operations import alarms, health, heartbeats, samples, watch
from apps.operations.models import Alarm, Job, JobRun
from apps.operations.schedules import every
from tests.support.factories import make_staff, make_token, make_world
from tests.support.tasks import declared_task

pytestmark = pytest.mark.django_db

# Of this database alone: roles are shared by all databases of the server, and so by tests that run beside.
LOOSEN = "GRANT SELECT ON accounts_principal TO memory_app"
MEND = "REVOKE SELECT ON accounts_principal FROM memory_app"


@pytest.fixture(autouse=True)
def nothing_kept():
    health.cached_roles.forget()
    health.cached_migrations.forget()


@pytest.fixture
def a_broker(monkeypatch):
    monkeypatch.setitem(health.CHECKS, "broker", lambda: health.OK)


def bearer(*scopes: str) -> dict[str, str]:
    return {"HTTP_AUTHORIZATION": f"Bearer {make_token(make_world().principal, *scopes)}"}


def test_live_touches_nothing(client, django_assert_num_queries) -> None:
    with django_assert_num_queries(0):
        answer = client.get("/health/live")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_ready_when_all_is_as_it_should_be(client, a_broker) -> None:
    answer = client.get("/health/ready")
    assert answer.status_code == 200
    assert answer.json() == {
        "status": "ok",
        "checks": {"database": "ok", "roles": "ok", "migrations": "ok", "broker": "ok"},
    }


def test_a_loosened_role_is_not_ready(client, a_broker, admin_connection) -> None:
    admin_connection.execute(LOOSEN)
    try:
        answer = client.get("/health/ready")
    finally:
        admin_connection.execute(MEND)
    assert (answer.status_code, answer.json()["checks"]["roles"]) == (503, "loosened")
    assert client.get("/health/ready").status_code == 200


def test_a_dropped_policy_is_not_ready(client, a_broker, owner_connection) -> None:
    owner_connection.execute("ALTER TABLE operations_alarm NO FORCE ROW LEVEL SECURITY")
    try:
        answer = client.get("/health/ready")
    finally:
        owner_connection.execute("ALTER TABLE operations_alarm FORCE ROW LEVEL SECURITY")
    assert (answer.status_code, answer.json()["checks"]["roles"]) == (503, "loosened")


def test_a_pending_migration_is_not_ready(client, a_broker, monkeypatch) -> None:
    from django.db.migrations.executor import MigrationExecutor

    monkeypatch.setattr(MigrationExecutor, "migration_plan", lambda self, targets: ["one"])
    answer = client.get("/health/ready")
    assert (answer.status_code, answer.json()["checks"]["migrations"]) == (503, "pending")


def test_a_broker_that_does_not_answer_is_not_ready(client, settings) -> None:
    settings.CELERY_BROKER_URL = "redis+socket:///nonexistent/valkey.sock?virtual_host=0"
    answer = client.get("/health/ready")
    assert (answer.status_code, answer.json()["checks"]["broker"]) == (503, "unreachable")
    assert "nonexistent" not in answer.content.decode()


def test_a_broker_that_is_busy_is_not_ready(client, monkeypatch) -> None:
    def busy(*arguments, **options):
        raise redis.TimeoutError("redis://user:secret@host")

    monkeypatch.setattr(redis.Redis, "ping", busy)
    answer = client.get("/health/ready")
    assert answer.json()["checks"]["broker"] == "unreachable"
    assert "secret" not in answer.content.decode()


def test_a_bad_answer_is_not_kept_and_a_good_one_is() -> None:
    answers = iter(["pending", "ok"])
    check = health.Cached(lambda: next(answers), seconds=60)
    assert [check(), check(), check()] == ["pending", "ok", "ok"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["/health/jobs", "/metrics"])
def test_the_others_need_the_scope_monitor(client, path) -> None:
    assert client.get(path).status_code == 401
    assert client.get(path, HTTP_AUTHORIZATION="Bearer mp_invented").status_code == 401
    assert client.get(path, **bearer("search", "feedback")).status_code == 403
    assert client.get(path, **bearer("monitor")).status_code == 200


def test_jobs_tell_who_is_overdue(client) -> None:
    with (
        clock.frozen(clock.now()) as now,
        declared_task(lambda: None, schedule=every(minutes=15), freshness=timedelta(minutes=30)),
    ):
        Job.objects.create(name="tests.task", known_since=now.at, last_success_at=now.at)
        monitor = bearer("monitor")
        find = lambda answer: next(j for j in answer.json()["jobs"] if j["job"] == "tests.task")  # noqa: E731
        now.advance(timedelta(minutes=30))
        answer = client.get("/health/jobs", **monitor)
        assert (answer.status_code, find(answer)["overdue"]) == (200, False)
        now.advance(timedelta(seconds=1))
        answer = client.get("/health/jobs", **monitor)
        assert (answer.status_code, find(answer)["overdue"]) == (503, True)
        assert find(answer)["age_seconds"] == 1801


def test_an_overdue_job_is_an_alarm_also_when_it_never_ran_and_clears_by_a_success() -> None:
    with (
        clock.frozen(clock.now()) as now,
        declared_task(lambda: None, schedule=every(minutes=15), freshness=timedelta(minutes=30)),
    ):
        watch.check_freshness()
        assert not Alarm.objects.filter(source="tests.task").exists()
        Job.objects.create(name="tests.task", known_since=now.at)
        now.advance(timedelta(minutes=31))
        watch.check_freshness()
        alarm = Alarm.objects.get(source="tests.task", reason="overdue")
        assert alarm.details == {"seconds": 1860, "limit_seconds": 1800}
        Job.objects.update(last_success_at=now.at)
        watch.check_freshness()
        alarm.refresh_from_db()
        assert alarm.resolved_at == now.at


def metrics(client) -> dict[tuple, float]:
    text = client.get("/metrics", **bearer("monitor")).content.decode()
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_metrics_show_jobs_processes_alarms_and_requests(client) -> None:
    with declared_task(lambda: None, schedule=every(minutes=15)):
        Job.objects.create(name="tests.task", last_success_at=clock.now(), consecutive_failures=2)
        heartbeats.Heartbeat("worker").beat()
        alarms.raise_alarm(source="tests.source", reason="overdue")
        client.get("/health/live")
        found = metrics(client)
    job = ("job", "tests.task")
    assert 0 <= found[("memory_job_age_seconds", job)] < 60
    assert found[("memory_job_age_limit_seconds", job)] == 1800
    assert found[("memory_job_failures", job)] == 2
    assert found[("memory_processes_live", ("kind", "worker"))] == 1
    assert found[("memory_processes_live", ("kind", "beat"))] == 0
    assert found[("memory_alarms_open", ("reason", "overdue"), ("source", "tests.source"))] == 1
    live = ("memory_http_requests_total", ("method", "GET"), ("route", "health/live"), ("status", "200"))
    assert found[live] >= 1


def test_metrics_show_the_newest_sample_of_each_series_with_its_time(client) -> None:
    world = make_world()
    earlier = clock.now() - timedelta(minutes=5)
    series = [
        samples.Reading("traces_saved", 3, {"status": "complete"}, world.workspace.pk),
        samples.Reading("traces_saved", 1, {"status": "partial"}, world.workspace.pk),
        samples.Reading("backlog_rows", 7),
    ]
    samples.record(series, at=earlier)
    later = clock.now()
    samples.record([samples.Reading("traces_saved", 4, {"status": "complete"}, world.workspace.pk)], at=later)
    samples.record([samples.Reading("backlog_rows", 9)], at=earlier - timedelta(hours=1))
    found = metrics(client)
    complete = (("status", "complete"), ("workspace", str(world.workspace.pk)))
    partial = (("status", "partial"), ("workspace", str(world.workspace.pk)))
    assert found[("memory_traces_saved", *complete)] == 4
    assert found[("memory_traces_saved", *partial)] == 1
    assert found[("memory_traces_saved_time_seconds", *complete)] == pytest.approx(later.timestamp())
    assert found[("memory_backlog_rows", ("workspace", ""))] == 7


@pytest.mark.parametrize(
    "reading",
    [
        samples.Reading("What is it?", 1),
        samples.Reading("tests", 1, {"who": "user@example.org asked"}),
        samples.Reading("tests", float("nan")),
    ],
)
def test_samples_are_numbers_under_codes(reading) -> None:
    with pytest.raises(ValueError):
        samples.record([reading])


def test_samples_are_seen_by_grant() -> None:
    from apps.core.db.sessions import staff_session
    from apps.operations.models import Sample

    mine, other = make_world(), make_world()
    samples.record([samples.Reading("tests", 1, workspace=world.workspace.pk) for world in (mine, other)])
    with staff_session(make_staff(mine.workspace, "view_traces")):
        assert [sample.workspace_id for sample in Sample.objects.all()] == [mine.workspace.pk]
    with staff_session(make_staff(mine.workspace, "annotate")):
        assert not Sample.objects.exists()


def test_job_runs_are_seen_by_who_watches() -> None:
    from apps.core.db.sessions import staff_session

    world = make_world()
    JobRun.objects.create(
        id=uuid4(), name="t", lease_key="t", asked_at=clock.now(), lease_expires_at=clock.now()
    )
    for grant, sees in (("audit", True), ("operate_collection", True), ("view_traces", False)):
        with staff_session(make_staff(world.workspace, grant)):
            assert JobRun.objects.exists() is sees
