"""The platform on servers that are not its own: PostgreSQL over TCP with passwords, and a Redis."""

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest

from memory_platform.embedded import EmbeddedError, redis_client_url, temporary_postgres
from memory_platform.embedded.postgres import DATABASE
from tests.support import ROOT
from tests.support.stack import Stack, outside, running_stack, wait

pytestmark = [pytest.mark.external, pytest.mark.installation]

OLDER = 16
LADDER = ("selected", "validated", "used")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture(scope="module")
def database_urls() -> Iterator[dict[str, str]]:
    """URLs of the four logins on a PostgreSQL of the older major version, reached over TCP."""
    try:
        with temporary_postgres(OLDER, tcp_port=free_port()) as server:
            server.ensure_database()
            yield {
                "DATABASE_URL": server.url("app"),
                "DATABASE_OWNER_URL": server.url("owner"),
                "DATABASE_ADMIN_URL": server.url("admin"),
                "MONITOR_DATABASE_URL": server.url("probe"),
            }
    except EmbeddedError as reason:
        pytest.skip(f"no PostgreSQL {OLDER} here: {reason}")


@pytest.fixture(scope="module")
def broker_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("there is no redis-server on this machine")
    port = free_port()
    folder = tmp_path_factory.mktemp("redis")
    options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
    process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)
    try:
        url = f"redis://127.0.0.1:{port}/0"
        wait(lambda: answers(url), "redis")
        yield url
    finally:
        process.terminate()
        process.wait()


def answers(url: str) -> bool:
    import redis

    try:
        with redis.Redis.from_url(redis_client_url(url)) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


@pytest.fixture(scope="module")
def external(database_urls: dict[str, str], broker_url: str) -> Iterator[Stack]:
    """The processes with the login memory_app alone, after an operator has prepared the database."""
    prepared = subprocess.run(
        [sys.executable, "manage.py", "prepare_database"],
        cwd=ROOT,
        env=outside() | database_urls | {"BROKER_URL": broker_url, "SECRET_KEY": "x" * 50},
        capture_output=True,
        text=True,
    )
    assert prepared.returncode == 0, prepared.stderr
    app = database_urls["DATABASE_URL"]
    with running_stack(port=18200, DATABASE_URL=app, BROKER_URL=broker_url) as stack:
        yield stack


def test_no_server_of_our_own_runs(external: Stack) -> None:
    assert not (external.var / "postgres").exists()
    assert not (external.var / "valkey").exists()
    for name in ("web", "worker", "beat"):
        assert external.info(name)["statename"] in ("STARTING", "RUNNING")


def test_search_and_use_over_http(external: Stack) -> None:
    with external.client() as http:
        item = {"identity": "tide", "text": "High water stands at the north quay at noon."}
        stored = http.post("/v1/nodes:batch", json={"items": [item]}).raise_for_status().json()
        assert stored["results"][0]["result"] == "created"
        found = http.post("/v1/search", json={"query": "north quay"}).raise_for_status().json()
        source = found["results"][0]["source_id"]
        uses = [{"source_id": source, "stage": stage} for stage in LADDER]
        body = {"idempotency_key": "external", "uses": uses}
        receipt = http.post(f"/v1/traces/{found['trace_id']}/uses", json=body).raise_for_status().json()
        assert all(change["applied"] for change in receipt["changes"])
        assert http.get("/health/ready").status_code == 200


def test_job_that_came_over_the_broker_succeeds(external: Stack) -> None:
    external.manage("shell", "-c", "from apps.operations.tasks import verify_audit; verify_audit.delay()")
    with external.client() as http:

        def succeeded() -> bool:
            jobs = {job["job"]: job for job in http.get("/health/jobs").json()["jobs"]}
            return jobs["operations.verify_audit"]["last_success_at"] is not None

        wait(succeeded, "a job run")


def test_roles_are_as_declared_on_the_older_server(
    external: Stack, database_urls: dict[str, str], broker_url: str
) -> None:
    with psycopg.connect(database_urls["DATABASE_URL"]) as connection:
        assert connection.info.server_version // 10000 == OLDER
        assert connection.info.dbname == DATABASE
    assert "No difference" in external.manage("verify_roles", **database_urls)
