"""The embedded servers: where they live, who may read what, and that a crash keeps nothing from starting."""

import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import kombu
import psycopg
import pytest
import redis

from memory_platform.embedded import (
    EmbeddedError,
    EmbeddedPostgres,
    EmbeddedValkey,
    Installation,
    WrongDataVersion,
    celery_broker_url,
    redis_client_url,
    temporary_postgres,
    temporary_valkey,
)
from memory_platform.embedded.directories import SHARED_STATE, SOCKET_PATH_BYTES
from memory_platform.embedded.postgres_settings import settings_text

ROOT = Path(__file__).resolve().parent.parent.parent
MARK = "a-text-that-only-the-caller-may-see"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path holds a space and that the server's user can pass."""
    path = Path(tempfile.mkdtemp(prefix="memory test "))
    path.chmod(0o711)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def running() -> Iterator[EmbeddedPostgres]:
    with temporary_postgres() as server:
        yield server


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def write_row(server: EmbeddedPostgres) -> None:
    with psycopg.connect(server.url("admin", "postgres")) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept AS SELECT 1 AS value")


def read_row(server: EmbeddedPostgres) -> object:
    with psycopg.connect(server.url("admin", "postgres")) as connection:
        return connection.execute("SELECT value FROM kept").fetchone()


def kill_hard(server: EmbeddedPostgres) -> None:
    process = server._server.process
    assert process is not None
    process.kill()
    process.wait()


def test_killed_server_starts_again_from_a_path_with_a_space_and_keeps_what_it_acknowledged(
    folder: Path,
) -> None:
    server = EmbeddedPostgres(folder / "data", folder / "run")
    try:
        server.start()
        write_row(server)
        kill_hard(server)
        assert (server.data / "postmaster.pid").exists()
        server.start()
        assert read_row(server) == (1,)
    finally:
        server.destroy()
    assert not server.wished_data.exists()


def test_lock_whose_process_id_went_to_another_program_does_not_keep_the_server_from_starting(
    folder: Path,
) -> None:
    server = EmbeddedPostgres(folder / "data", folder / "run")
    stranger = subprocess.Popen(["sleep", "60"], **server.user.popen_options())
    try:
        server.start()
        kill_hard(server)
        for lock in (server.data / "postmaster.pid", server.sockets / ".s.PGSQL.5432.lock"):
            lines = lock.read_text().splitlines()
            lock.write_text("\n".join([str(stranger.pid), *lines[1:]]) + "\n")
        server.start()
        assert server.answers()
    finally:
        stranger.kill()
        stranger.wait()
        server.destroy()


def test_second_server_in_a_folder_in_use_is_refused(
    running: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_platform.embedded.postgres.LOCK_SECONDS", 0.2)
    second = EmbeddedPostgres(running.wished_data, running.wished_run)
    with pytest.raises(EmbeddedError, match="still works in"):
        second.prepare()
    assert running.answers()


def test_data_of_another_major_version_is_refused_and_left_alone(folder: Path) -> None:
    data = folder / "data"
    data.mkdir()
    (data / "PG_VERSION").write_text("17\n")
    server = EmbeddedPostgres(data, folder / "run")
    with pytest.raises(WrongDataVersion, match="PostgreSQL 17; this release runs 18"):
        server.start()
    assert [path.name for path in data.iterdir()] == ["PG_VERSION"]


def test_folder_with_something_else_is_refused(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "letter.txt").touch()
    with pytest.raises(EmbeddedError, match="no PostgreSQL data"):
        EmbeddedPostgres(folder / "data", folder / "run").prepare()


def test_broken_off_initialisation_is_begun_again(folder: Path) -> None:
    half = folder / "data.making"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")
    server = EmbeddedPostgres(folder / "data", folder / "run", durable=False)
    try:
        server.start()
        assert not half.exists()
    finally:
        server.destroy()


def test_path_too_long_for_a_socket_becomes_a_link_to_a_short_private_folder(folder: Path) -> None:
    deep = folder / ("d" * SOCKET_PATH_BYTES)
    server = EmbeddedPostgres(folder / "data", deep / "run", durable=False)
    valkey = EmbeddedValkey(folder / "valkey", deep / "valkey")
    try:
        server.start()
        valkey.start()
        sockets = server.sockets
        assert (deep / "run").is_symlink()
        assert mode(sockets) == mode(valkey.socket.parent) == 0o700
        server.stop()
        server.start()
        assert server.sockets == sockets
    finally:
        server.destroy()
        valkey.destroy()
    assert not sockets.exists()


def test_link_to_a_folder_of_someone_else_is_not_followed(folder: Path) -> None:
    open_to_all = folder / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    (folder / "run").symlink_to(open_to_all)
    server = EmbeddedPostgres(folder / "data", folder / "run")
    assert server.sockets != open_to_all
    server.destroy()


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's server runs as that user")
def test_root_keeps_data_elsewhere_when_the_servers_user_cannot_pass(folder: Path) -> None:
    folder.chmod(0o700)
    server = EmbeddedPostgres(folder / "data", folder / "run", durable=False)
    try:
        server.start()
        home = server.data.parent
        assert server.wished_data.is_symlink()
        assert home.parent == SHARED_STATE
        assert server.data.stat().st_uid == server.user.uid != 0
    finally:
        server.destroy()
    assert not home.exists()


def test_nothing_listens_on_the_network_and_passwords_are_asked(running: EmbeddedPostgres) -> None:
    with psycopg.connect(running.url("admin", "postgres")) as connection:
        settings: dict[str, str] = dict(
            connection.execute(
                "SELECT name, setting FROM pg_settings "
                "WHERE name IN ('listen_addresses', 'password_encryption')"
            ).fetchall()
        )
        methods = connection.execute("SELECT DISTINCT auth_method FROM pg_hba_file_rules").fetchall()
    assert settings == {"listen_addresses": "", "password_encryption": "scram-sha-256"}
    assert methods == [("scram-sha-256",)]
    password = running.url("admin", "postgres").split(":")[2].split("@")[0]
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(running.url("admin", "postgres").replace(password, "guessed"))


def test_log_carries_no_query_text(running: EmbeddedPostgres) -> None:
    with psycopg.connect(running.url("admin", "postgres"), autocommit=True) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1/0 -- " + MARK)
        connection.execute("CREATE TABLE t (v text UNIQUE)")
        connection.execute("INSERT INTO t VALUES (%s)", [MARK])
        with pytest.raises(psycopg.errors.UniqueViolation):
            connection.execute("INSERT INTO t VALUES (%s)", [MARK])
    log = running.log_file.read_text()
    assert "division by zero" in log
    assert MARK not in log


def test_only_a_test_gives_up_durability() -> None:
    assert "fsync = 'on'" in settings_text(durable=True)
    assert "full_page_writes = 'on'" in settings_text(durable=True)
    assert "synchronous_commit = 'on'" in settings_text(durable=True)


def test_older_binaries_over_tcp_with_passwords() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with temporary_postgres(16, tcp_port=port) as server:
        assert f"@127.0.0.1:{port}/" in server.url("admin", "postgres")
        with psycopg.connect(server.url("admin", "postgres")) as connection:
            assert connection.info.server_version // 10000 == 16
            connection.execute("CREATE EXTENSION vector")
            assert connection.execute("SELECT lower('ÄЖ')").fetchone() == ("äж",)


def test_secrets_are_random_kept_and_private(folder: Path) -> None:
    first, second = Installation(folder / "one"), Installation(folder / "two")
    for installation in (first, second):
        installation.prepare()
        installation.write_connections()
    assert first.secret_key() == Installation(folder / "one").secret_key() != second.secret_key()
    assert len(first.secret_key()) >= 50
    for name in ("secrets.json", "connections.json", "erasures.jsonl"):
        assert mode(first.var / name) == 0o600
    assert mode(first.logs) == mode(first.postgres.sockets) == 0o700


def test_valkey_keeps_what_it_acknowledged_when_killed(folder: Path) -> None:
    server = EmbeddedValkey(folder / "data", folder / "run")
    try:
        server.start()
        with redis.Redis.from_url(redis_client_url(server.url)) as client:
            client.set("kept", "1")
        process = server._server.process
        assert process is not None
        process.send_signal(signal.SIGKILL)
        process.wait()
        server.start()
        with redis.Redis.from_url(redis_client_url(server.url)) as client:
            assert client.get("kept") == b"1"
    finally:
        server.destroy()


def test_broker_url_serves_celery_and_the_client() -> None:
    with temporary_valkey() as server:
        with kombu.Connection(server.url) as connection:
            connection.connect()
        with redis.Redis.from_url(redis_client_url(server.url)) as client:
            assert client.ping()


@pytest.mark.parametrize("path", ["/run/valkey.sock", "/a path/100%/valkey.sock"])
def test_broker_urls_translate_both_ways(path: str) -> None:
    from memory_platform.embedded.urls import socket_broker_url

    url = socket_broker_url(Path(path), 2)
    assert celery_broker_url(redis_client_url(url)) == url
    assert celery_broker_url("redis://broker:6379/1") == redis_client_url("redis://broker:6379/1")


STARTED_BY_ANOTHER = """
import os, sys
from pathlib import Path
import psycopg
from memory_platform.embedded import EmbeddedPostgres, EmbeddedValkey
folder = Path(sys.argv[1])
postgres = EmbeddedPostgres(folder / "data", folder / "run")
valkey = EmbeddedValkey(folder / "valkey", folder / "valkey run")
postgres.start(); valkey.start()
assert postgres.data.stat().st_uid == os.getuid() != 0
psycopg.connect(postgres.url("admin", "postgres")).close()
postgres.stop(); valkey.stop()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests run as an ordinary user already")
def test_ordinary_user_runs_both_servers(folder: Path) -> None:
    entry = pwd.getpwnam("nobody")
    options: dict[str, object] = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": [], "cwd": "/"}
    environment = {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]])}
    interpreters = [sys.executable, "/usr/bin/python3"]  # a version manager's lies in root's home
    python = next((path for path in interpreters if _serves(path, environment, options)), None)
    if python is None:
        pytest.skip("no Python with the libraries that an ordinary user may run")
    os.chown(folder, entry.pw_uid, entry.pw_gid)
    ran = subprocess.run(
        [python, "-c", STARTED_BY_ANOTHER, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        **options,  # type: ignore[call-overload]
    )
    assert ran.returncode == 0, ran.stderr


def _serves(python: str, environment: dict[str, str], options: dict[str, object]) -> bool:
    try:
        ran = subprocess.run(
            [python, "-c", "import memory_platform.embedded"],
            env=environment,
            capture_output=True,
            **options,  # type: ignore[call-overload]
        )
    except OSError:
        return False
    return bool(ran.returncode == 0)
