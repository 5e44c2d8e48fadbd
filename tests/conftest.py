"""The suite runs as `memory_app` against a PostgreSQL of its own, migrated by `memory_owner`."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import psycopg
import pytest

from tests.support import server as servers

# A busy machine is slow, not wrong: no example is failed by its time.
hypothesis.settings.register_profile("suite", deadline=None)
hypothesis.settings.load_profile("suite")

ROOT = Path(__file__).resolve().parent.parent
DATABASE = "memory"
VERSION = os.environ.get("MEMORY_TEST_POSTGRES", "18")


def pytest_configure(config: pytest.Config) -> None:
    """One server is migrated; processes of xdist each start from a copy of its files."""
    if hasattr(config, "workerinput"):
        server = servers.copy_of(Path(os.environ["MEMORY_TEST_TEMPLATE"]), VERSION)
    else:
        server = _migrated()
        if getattr(config.option, "numprocesses", None):
            server.halt(signal.SIGINT)
            os.environ["MEMORY_TEST_TEMPLATE"] = str(server.folder)
    config.memory_server = server  # type: ignore[attr-defined]
    _set_urls(os.environ, server)
    _connect_django(os.environ["DATABASE_URL"])


def _connect_django(url: str) -> None:
    """Django's settings were read before there was a server; no connection has been made yet."""
    from django.conf import settings
    from django.db import connections

    from memory_platform.environment import environment
    from memory_platform.settings.database import login

    # Hundreds of users are made; how slow a real hash is, is not what the suite is about.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    environment.cache_clear()
    connections.databases["default"].update(login(url, pooled=False))


def _set_urls(environ: Any, server: servers.TestServer) -> None:
    environ["DATABASE_URL"] = server.url("memory_app", DATABASE)
    environ["DATABASE_OWNER_URL"] = server.url("memory_owner", DATABASE)
    environ["DATABASE_ADMIN_URL"] = server.url("memory_admin", DATABASE)
    environ["MONITOR_DATABASE_URL"] = server.url("memory_probe", DATABASE)


def _migrated() -> servers.TestServer:
    """A migrated server, out of the files that an earlier run kept where the migrations are the same.

    It is migrated all the same, since grants follow declarations; without anything to apply that takes seconds.
    """
    kept = servers.kept_files(ROOT, VERSION)
    known = kept is not None and kept.exists()
    server = servers.copy_of(kept, VERSION) if kept and known else servers.fresh(VERSION)
    _migrate(server)
    if kept and not known:
        server.halt(signal.SIGINT)
        servers.keep(server, kept)
        server.start()
    return server


def _migrate(server: servers.TestServer) -> None:
    environ = dict(os.environ)
    _set_urls(environ, server)
    environ["DATABASE_ADMIN_URL"] = server.url("memory_admin", "postgres")
    for command in (["provision_roles", "--apply"], ["migrate", "-v", "0"]):
        done = subprocess.run(
            [sys.executable, "manage.py", *command], cwd=ROOT, env=environ, capture_output=True, text=True
        )
        if done.returncode:
            server.remove()
            pytest.exit(f"manage.py {command[0]} failed:\n{done.stdout}\n{done.stderr}", 3)


def pytest_unconfigure(config: pytest.Config) -> None:
    server = getattr(config, "memory_server", None)
    if server is not None:
        server.remove()


@pytest.fixture(scope="session")
def django_db_setup() -> None:
    """The database is a copy of the template, made as the owner; nothing is created here."""


@pytest.fixture(autouse=True, scope="session")
def _clean_as_admin() -> Iterator[None]:
    """The application's login may not truncate, so transactional tests are cleaned by the administrator."""
    from django.test import TransactionTestCase

    from tests.support.clean import truncate_all

    original = TransactionTestCase._fixture_teardown
    TransactionTestCase._fixture_teardown = lambda self: truncate_all()  # type: ignore[method-assign]
    yield
    TransactionTestCase._fixture_teardown = original  # type: ignore[method-assign]


@pytest.fixture(autouse=True, scope="session")
def _patient() -> None:
    """A search gives up its trace and receipt when a statement takes two seconds; a busy machine is slow, not wrong."""
    from apps.search import services

    services.TIMEOUTS["statement_timeout"] = "60s"


@pytest.fixture
def admin_connection() -> Iterator["psycopg.Connection[Any]"]:
    """A connection of the administrator, to look at what no role of the application may see."""
    with psycopg.connect(os.environ["DATABASE_ADMIN_URL"], autocommit=True) as connection:
        yield connection


@pytest.fixture
def owner_connection() -> Iterator["psycopg.Connection[Any]"]:
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as connection:
        yield connection
