"""The web server as it is run: heartbeats of its workers, counters that are one, a refusal to serve unsafely."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from apps.operations.models import Process
from tests.support.factories import make_token, make_world
from tests.support.web import SECONDS, Web

pytestmark = pytest.mark.django_db(transaction=True)

# Of this database alone: roles are shared by all databases of the server, and so by tests that run beside.
LOOSEN = "GRANT SELECT ON accounts_principal TO memory_app"
MEND = "REVOKE SELECT ON accounts_principal FROM memory_app"


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    started = Web(tmp_path)
    yield started
    started.stop()


def test_workers_report_and_count_together(web) -> None:
    web.wait_until_live(2)
    for _ in range(12):
        assert web.get("/health/live") == (200, '{"status":"ok"}')
    token = make_token(make_world().principal, "monitor")
    for _ in range(3):
        status, text = web.get("/metrics", Authorization=f"Bearer {token}")
        assert status == 200
        counted = {
            sample.labels["route"]: sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == "memory_http_requests_total"
        }
        assert counted["health/live"] == 12
    web.stop()
    assert not Process.objects.filter(kind="web").exists()
    lines = web.log.read_text().splitlines()
    assert all(line.startswith("{") for line in lines), lines


def test_an_unsafe_database_is_refused_and_named(tmp_path, admin_connection) -> None:
    admin_connection.execute(LOOSEN)
    try:
        web = Web(tmp_path)
        assert web.process.wait(SECONDS) != 0
        assert not Process.objects.exists()
        log = web.log.read_text()
        assert "UnsafeDatabase" in log
        assert "accounts_principal" in log
    finally:
        admin_connection.execute(MEND)
