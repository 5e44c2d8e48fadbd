"""Provisioning on servers of its own: what it makes, what it marks, and what it never takes."""

import os
import subprocess
from collections.abc import Iterator
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command

from apps.core.db import marks, provision
from apps.core.db.provision import Refused
from apps.core.db.roles import ROLES
from apps.core.db.verify import FAMILIES
from apps.core.db.verify import roles as verified
from tests.conftest import VERSION
from tests.support import server as servers

NAMES = [role.name for role in ROLES]


@pytest.fixture(scope="module")
def cluster() -> Iterator[servers.TestServer]:
    server = servers.fresh(VERSION)
    try:
        yield server
    finally:
        server.remove()


@pytest.fixture
def admin(cluster: servers.TestServer) -> Iterator["psycopg.Connection[Any]"]:
    """The administrator in an empty database; roles are gone afterwards."""
    with psycopg.connect(cluster.url("memory_admin", "postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE memory TEMPLATE template0")
    with psycopg.connect(cluster.url("memory_admin", "memory"), autocommit=True) as connection:
        yield connection
    with psycopg.connect(cluster.url("memory_admin", "postgres"), autocommit=True) as connection:
        connection.execute("DROP DATABASE memory WITH (FORCE)")
        for name in reversed([*NAMES, "odd"]):
            connection.execute(f"DROP ROLE IF EXISTS {name}")


def roles(admin: Any) -> dict[str, tuple[bool, str | None]]:
    """Of ours: whether it may sign in, and its mark."""
    found = admin.execute(
        "SELECT rolname, rolcanlogin, shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = ANY (%s)",
        [NAMES],
    ).fetchall()
    return {name: (login, mark) for name, login, mark in found}


def test_new_roles_cannot_sign_in_and_carry_name_oid_and_checksum(admin) -> None:
    assert provision.provision(admin, "memory") == NAMES
    made = roles(admin)
    for role in ROLES:
        (oid,) = admin.execute("SELECT %s::regrole::oid", [role.name]).fetchone()
        assert made[role.name] == (False, f"{role.name} {oid} {marks.role_checksum(role)}")
    assert provision.provision(admin, "memory") == []
    assert roles(admin) == made


def test_logins_are_let_in_one_by_one_and_no_password_reaches_the_server(admin) -> None:
    provision.provision(admin, "memory")
    provision.let_in(admin, {"memory_app": "a-secret", "memory_api": "never", "stranger": "never"})
    assert {name for name, (login, _) in roles(admin).items() if login} == {"memory_app"}
    stored = admin.execute("SELECT rolpassword FROM pg_authid WHERE rolname = 'memory_app'").fetchone()[0]
    assert stored.startswith("SCRAM-SHA-256$")
    assert provision.provision(admin, "memory") == []
    assert roles(admin)["memory_app"][0]


def test_login_on_a_role_made_a_moment_ago_makes_nothing(admin, monkeypatch) -> None:
    real = provision.role_statements

    def let_in_at_once(version: int) -> Iterator[Any]:
        yield from real(version)
        yield "ALTER ROLE memory_probe LOGIN"

    monkeypatch.setattr(provision, "role_statements", let_in_at_once)
    with pytest.raises(Refused, match="role memory_probe: expected NOLOGIN, found LOGIN"):
        provision.provision(admin, "memory")
    assert roles(admin) == {}


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        ("ALTER ROLE memory_api LOGIN", "role memory_api: expected NOLOGIN, found LOGIN"),
        ("GRANT pg_read_all_data TO memory_app", "not a member of pg_read_all_data"),
        ("CREATE ROLE odd; GRANT memory_owner TO odd", "role odd: expected not a member of memory_owner"),
    ],
)
def test_what_provisioning_does_not_mend_stops_it(admin, broken: str, named: str) -> None:
    provision.provision(admin, "memory")
    admin.execute(broken)
    with pytest.raises(Refused, match=named):
        provision.provision(admin, "memory")


def test_attributes_that_were_given_are_taken_back(admin) -> None:
    provision.provision(admin, "memory")
    admin.execute("ALTER ROLE memory_app BYPASSRLS CREATEDB")
    provision.provision(admin, "memory")
    found = admin.execute("SELECT rolbypassrls OR rolcreatedb FROM pg_roles WHERE rolname = 'memory_app'")
    assert found.fetchone() == (False,)


def test_a_server_that_is_too_old_gets_nothing(admin, monkeypatch) -> None:
    monkeypatch.setattr(verified, "LEAST_VERSION", 990000)
    with pytest.raises(Refused, match="too old"):
        provision.provision(admin, "memory")
    assert roles(admin) == {}


@pytest.mark.parametrize(
    ("made", "named"),
    [
        ("CREATE ROLE memory_api", "role memory_api"),
        ("CREATE ROLE memory_api; COMMENT ON ROLE memory_api IS 'memory_api 1 0'", "role memory_api"),
        ("CREATE TABLE auth_user (id int)", "table public.auth_user"),
        ("CREATE VIEW observation_staff AS SELECT 1 AS one", "view public.observation_staff"),
        (
            "CREATE FUNCTION traces_expire(int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
            r"function traces_expire\(integer\)",
        ),
    ],
    ids=["role", "other mark", "table", "view", "function"],
)
def test_a_stranger_of_our_name_stops_it_and_stays_as_it_was(admin, made: str, named: str) -> None:
    admin.execute(made)
    before = roles(admin)
    with pytest.raises(Refused, match=f"{named}: expected made by this bootstrap"):
        provision.provision(admin, "memory")
    assert roles(admin) == before


def test_the_printed_sql_stops_at_a_strangers_role_too(admin) -> None:
    admin.execute("CREATE ROLE memory_api")
    script = b"; ".join(
        statement.as_bytes(admin) for statement in provision.role_statements(admin.info.server_version)
    )
    with pytest.raises(psycopg.errors.RaiseException, match="memory_api was not made by this bootstrap"):
        admin.execute(script)


@pytest.fixture
def command(cluster, admin, monkeypatch) -> Any:
    """`provision_roles` against the cluster; its output."""
    from memory_platform.environment import environment

    for name, login in (("ADMIN", "memory_admin"), ("OWNER", "memory_owner")):
        monkeypatch.setenv(f"DATABASE_{name}_URL", cluster.url(login, "memory"))
    monkeypatch.setenv("DATABASE_URL", cluster.url("memory_app", "memory"))
    monkeypatch.setenv("MONITOR_DATABASE_URL", cluster.url("memory_probe", "memory"))
    environment.cache_clear()

    def call(**options: Any) -> str:
        out = StringIO()
        call_command("provision_roles", stdout=out, **options)
        return out.getvalue()

    yield call
    monkeypatch.undo()
    environment.cache_clear()


def test_adopting_is_said_twice(command, admin, monkeypatch) -> None:
    admin.execute("CREATE ROLE memory_api")
    with pytest.raises(CommandError, match="role memory_api: expected made by this bootstrap"):
        command(apply=True)
    for answer in ("", "yes", "postgres"):
        monkeypatch.setattr("builtins.input", lambda prompt, answer=answer: answer)
        with pytest.raises(CommandError, match="Nothing was taken"):
            command(adopt=True)
    assert roles(admin) == {"memory_api": (False, None)}
    said = command(adopt=True, confirm="memory")
    assert "role memory_api\n1 of our names without our mark" in said
    made = roles(admin)
    assert all(mark and mark.startswith(name) for name, (_, mark) in made.items())
    assert {name for name, (login, _) in made.items() if login} == {
        "memory_app",
        "memory_owner",
        "memory_probe",
    }
    assert "0 of our names" in command(adopt=True, confirm="memory")
    command(apply=True)


def test_only_a_cluster_without_any_mark_is_older_than_marks(cluster, admin) -> None:
    url = cluster.url("memory_admin", "memory")
    assert not provision.without_marks(url)
    provision.provision(admin, "memory")
    assert not provision.without_marks(url)
    for name in NAMES:
        admin.execute(f"COMMENT ON ROLE {name} IS NULL")
    assert provision.without_marks(url)
    admin.execute("COMMENT ON ROLE memory_api IS 'memory_api 1 0'")
    assert not provision.without_marks(url)


@pytest.mark.django_db(transaction=True)
def test_a_migration_replaces_no_function_of_a_stranger(admin_connection) -> None:
    cursor = admin_connection.cursor()
    cursor.execute("BEGIN")
    try:
        cursor.execute(marks.refuse_strangers_sql("traces_expire"))
        cursor.execute(marks.refuse_strangers_sql("a_function_that_is_not_there"))
        cursor.execute("COMMENT ON FUNCTION traces_expire IS NULL")
        with pytest.raises(psycopg.errors.RaiseException, match="not made by this bootstrap"):
            cursor.execute(marks.refuse_strangers_sql("traces_expire"))
    finally:
        cursor.execute("ROLLBACK")


@pytest.mark.django_db(transaction=True)
def test_a_restored_dump_is_taken_deliberately_and_then_differs_in_nothing(request, tmp_path) -> None:
    """Into another database: roles are the same, every object has another oid, and texts were written anew."""
    server = request.config.memory_server
    dump = tmp_path / "dump"
    tmp_path.chmod(0o755)
    environment = {**os.environ, "PGHOST": str(server.folder), "PGUSER": "memory_admin"}
    with dump.open("wb") as file:
        subprocess.run([server.binary("pg_dump"), "-Fc", "memory"], env=environment, stdout=file, check=True)
    with psycopg.connect(server.url("memory_admin", "postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE copied TEMPLATE template0")
    try:
        with psycopg.connect(server.url("memory_admin", "copied"), autocommit=True) as admin:
            provision.provision(admin, "copied")
            restore = [server.binary("pg_restore"), "--exit-on-error", "-d", "copied", dump]
            subprocess.run(restore, env=environment, check=True)
            found = compared(admin)
            assert [str(each) for each in found if each.family != "foreign_objects"] == []
            assert {each.found for each in found} == {"a mark of another one"}
            assert {"table public.observations_observation", "view public.observation_staff"} <= {
                each.object for each in found
            }
            with pytest.raises(Refused, match="a mark of another one"):
                provision.provision(admin, "copied")
            provision.provision(admin, "copied", adopt=True)
            assert compared(admin) == []
    finally:
        with psycopg.connect(server.url("memory_admin", "postgres"), autocommit=True) as connection:
            connection.execute("DROP DATABASE copied WITH (FORCE)")


def compared(admin: Any) -> list[Any]:
    """Every difference of the administrator's database, as the owner sees it."""
    with admin.transaction(), admin.cursor() as cursor:
        cursor.execute("SET LOCAL SESSION AUTHORIZATION memory_owner")
        found = [each for compare in FAMILIES.values() for each in compare(cursor)]
        cursor.execute("RESET SESSION AUTHORIZATION")
    return found
