"""Each loosening of the database is named, alone, under its family."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from psycopg import sql

from apps.core import checks
from apps.core.checks import UnsafeDatabase, refuse_unsafe_database
from apps.core.db.verify import differences
from apps.core.db.verify import roles as verified_roles
from tests.conftest import ROOT
from tests.support.breakages import Breakage, found_with, told

pytestmark = pytest.mark.django_db

SESSION_ROLES = ("memory_api", "memory_staff", "memory_maintenance", "memory_monitor")
OURS = ("memory_owner", "memory_app", "memory_probe", *SESSION_ROLES)
TABLE = "accounts_principal"


def test_a_migrated_database_has_no_difference() -> None:
    assert differences() == []


def attribute(role: str, power: str) -> Breakage:
    return Breakage(f"ALTER ROLE {role} {power}", "attributes", f"role {role}")


def preset(where: str, name: str, value: str, of: str) -> Breakage:
    return Breakage(f"ALTER {where} SET {name} = {value}", "attributes", f"setting {name} of {of}")


ATTRIBUTES = [
    *(
        attribute(role, power)
        for role in OURS
        for power in ("SUPERUSER", "BYPASSRLS", "CREATEROLE", "CREATEDB", "REPLICATION", "INHERIT")
    ),
    *(attribute(role, "LOGIN") for role in SESSION_ROLES),
    preset("ROLE memory_app", "row_security", "off", "memory_app in (any database)"),
    preset("ROLE memory_app", "role", "memory_staff", "memory_app in (any database)"),
    preset("ROLE memory_app", "memory.user_id", "'1'", "memory_app in (any database)"),
    preset("ROLE ALL", "memory.principal_id", "'x'", "(any role) in (any database)"),
    preset("DATABASE memory", "row_security", "off", "(any role) in memory"),
    preset("ROLE memory_app IN DATABASE memory", "memory.user_id", "'1'", "memory_app in memory"),
    preset("ROLE memory_app", "session_replication_role", "replica", "memory_app in (any database)"),
    Breakage("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC", "attributes", "cluster identity"),
]


def member(role: str, parent: str) -> Breakage:
    return Breakage(f"GRANT {parent} TO {role}", "memberships", f"role {role}")


MEMBERSHIPS = [
    *(Breakage(f"CREATE ROLE odd; GRANT odd TO {role}", "memberships", f"role {role}") for role in OURS),
    member("memory_api", "memory_staff"),
    member("memory_app", "memory_owner"),
    member("memory_app", "pg_read_all_data"),
    member("memory_owner", "pg_write_all_data"),
    member("memory_probe", "memory_api"),
    member("memory_probe", "memory_owner"),
    Breakage("CREATE ROLE odd; GRANT memory_api TO odd", "memberships", "role odd"),
    Breakage("CREATE ROLE odd; GRANT memory_owner TO odd WITH ADMIN OPTION", "memberships", "role odd"),
    Breakage(
        "GRANT memory_api TO memory_app WITH ADMIN OPTION", "memberships", "role memory_app in memory_api"
    ),
    Breakage(
        "GRANT memory_monitor TO memory_probe WITH ADMIN OPTION",
        "memberships",
        "role memory_probe in memory_monitor",
    ),
    Breakage(
        "GRANT memory_api TO memory_app WITH INHERIT TRUE", "memberships", "role memory_app in memory_api"
    ),
    Breakage("REVOKE memory_staff FROM memory_app", "memberships", "role memory_app", loosens=False),
]


def right(statement: str, named: str, *, loosens: bool = True) -> Breakage:
    return Breakage(statement, "rights", named, loosens)


FUNCTION_DEFAULT = "ALTER DEFAULT PRIVILEGES FOR ROLE memory_owner GRANT {} TO {}"
RIGHTS = [
    *(
        right(f"REVOKE CONNECT ON DATABASE memory FROM {login}", f"database, {login}", loosens=False)
        for login in ("memory_app", "memory_owner", "memory_probe")
    ),
    *(
        right(f"GRANT {privilege} ON DATABASE memory TO {role}", f"database, {role}")
        for privilege in ("CREATE", "TEMPORARY")
        for role in ("memory_app", "memory_api", "PUBLIC")
    ),
    right("GRANT CONNECT ON DATABASE memory TO PUBLIC", "database, PUBLIC"),
    *(
        right(f"GRANT CREATE ON SCHEMA public TO {role}", f"schema public, {role}")
        for role in ("memory_api", "memory_app", "PUBLIC")
    ),
    right("CREATE SCHEMA odd; GRANT CREATE ON SCHEMA odd TO PUBLIC", "schema odd, PUBLIC"),
    right("CREATE SCHEMA odd; GRANT USAGE ON SCHEMA odd TO memory_api", "schema odd, memory_api"),
    right("GRANT USAGE ON SCHEMA public TO PUBLIC", "schema public, PUBLIC"),
    right("REVOKE USAGE ON SCHEMA public FROM memory_api", "schema public, memory_api", loosens=False),
    right(f"GRANT SELECT ON {TABLE} TO memory_app", f"table or view {TABLE}, memory_app"),
    right("GRANT TRUNCATE ON accounts_apitoken TO memory_api", "table or view accounts_apitoken, memory_api"),
    right("GRANT SELECT ON auth_user TO PUBLIC", "table or view auth_user, PUBLIC"),
    right("REVOKE SELECT ON auth_user FROM memory_app", "table or view auth_user, memory_app", loosens=False),
    right(f"GRANT SELECT (hash_key) ON {TABLE} TO memory_staff", f"columns of {TABLE}, memory_staff"),
    right(f"GRANT REFERENCES (id) ON {TABLE} TO memory_api", f"columns of {TABLE}, memory_api"),
    right(f"GRANT UPDATE (id) ON {TABLE} TO PUBLIC", f"columns of {TABLE}, PUBLIC"),
    right("GRANT USAGE ON SEQUENCE auth_user_id_seq TO memory_api", "sequence auth_user_id_seq, memory_api"),
    right(
        "SELECT lo_create(4242); GRANT SELECT ON LARGE OBJECT 4242 TO memory_api", "large objects, memory_api"
    ),
    right("SELECT lo_create(4242); GRANT UPDATE ON LARGE OBJECT 4242 TO PUBLIC", "large objects, PUBLIC"),
    right("SELECT lo_create(4242); ALTER LARGE OBJECT 4242 OWNER TO memory_api", "large objects, memory_api"),
    right(
        FUNCTION_DEFAULT.format("SELECT ON TABLES", "memory_api"),
        "default privileges of memory_owner (r), memory_api",
    ),
    right(
        FUNCTION_DEFAULT.format("USAGE ON SEQUENCES", "PUBLIC"),
        "default privileges of memory_owner (S), PUBLIC",
    ),
    right(
        FUNCTION_DEFAULT.format("EXECUTE ON FUNCTIONS", "PUBLIC"),
        "default privileges of memory_owner (f), PUBLIC",
    ),
]
STRAY_DEFINER = (
    "CREATE FUNCTION {} RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'; "
    "ALTER FUNCTION {} OWNER TO memory_owner; REVOKE ALL ON FUNCTION {} FROM PUBLIC"
)
POLICY = f"policy {TABLE}_api on {TABLE}"
OTHERS = [
    Breakage(f"ALTER TABLE {TABLE} NO FORCE ROW LEVEL SECURITY", "policies", f"table {TABLE}"),
    Breakage(f"ALTER TABLE {TABLE} DISABLE ROW LEVEL SECURITY", "policies", f"table {TABLE}"),
    Breakage(
        f"CREATE POLICY extra ON {TABLE} FOR SELECT TO memory_api USING (true)",
        "policies",
        f"policy extra on {TABLE}",
    ),
    Breakage(f"ALTER POLICY {TABLE}_api ON {TABLE} USING (true)", "policies", POLICY),
    Breakage(
        "GRANT EXECUTE ON FUNCTION accounts_find_token TO PUBLIC",
        "functions_and_views",
        "function accounts_find_token",
    ),
    Breakage(
        "ALTER FUNCTION accounts_find_token RESET search_path",
        "functions_and_views",
        "function accounts_find_token",
    ),
    Breakage(STRAY_DEFINER.replace("{}", "stray()"), "functions_and_views", "function stray()"),
    Breakage(
        STRAY_DEFINER.replace("{}", "accounts_find_token(int)"),
        "functions_and_views",
        "function accounts_find_token(integer)",
    ),
    Breakage("CREATE TABLE stray (id int)", "foreign_objects", "relation stray"),
    Breakage("ALTER DATABASE memory OWNER TO memory_app", "foreign_objects", "database"),
    Breakage(
        "ALTER SCHEMA public OWNER TO memory_app",
        "foreign_objects",
        "schema public",
        by=("memory_app",),  # the owner may no longer look into it
    ),
    Breakage(
        f"CREATE PUBLICATION stray FOR TABLE {TABLE}", "foreign_objects", f"publication stray of {TABLE}"
    ),
    Breakage(
        f"CREATE RULE stray AS ON DELETE TO {TABLE} DO INSTEAD NOTHING",
        "foreign_objects",
        f"rule stray on {TABLE}",
    ),
    Breakage(
        f"CREATE SCHEMA memory_app; CREATE TABLE memory_app.{TABLE} (id int)",
        "foreign_objects",
        f"relation memory_app.{TABLE}",
    ),
    Breakage("COMMENT ON ROLE memory_api IS NULL", "foreign_objects", "role memory_api"),
    Breakage("COMMENT ON ROLE memory_api IS 'memory_api 1 0'", "foreign_objects", "role memory_api"),
]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("broken", [*ATTRIBUTES, *MEMBERSHIPS, *RIGHTS, *OTHERS], ids=str)
def test_each_breakage_alone_is_named_and_stops_a_start(broken, admin_connection, monkeypatch) -> None:
    found = found_with(admin_connection, broken)
    assert told(found) == [(broken.family, broken.object, broken.loosens)]
    monkeypatch.setattr(checks, "differences", lambda: found)
    if broken.loosens:
        with pytest.raises(UnsafeDatabase, match="not as declared"):
            refuse_unsafe_database()
    else:
        refuse_unsafe_database()


@pytest.mark.django_db(transaction=True)
def test_a_path_through_another_role_is_named_with_each_step(admin_connection) -> None:
    chain = Breakage(
        "CREATE ROLE odd; GRANT memory_owner TO odd; GRANT odd TO memory_probe", "memberships", "role odd"
    )
    found = found_with(admin_connection, chain)
    assert [(each.object, each.expected) for each in found] == [
        ("role memory_probe", "not a member of odd"),
        ("role odd", "not a member of memory_owner"),
        ("role memory_probe", "no path to memory_owner"),
    ]


@pytest.mark.django_db(transaction=True)
def test_a_role_made_anew_under_our_name_is_not_ours(admin_connection) -> None:
    """With the rights and memberships of the one before: only the mark tells."""
    anew = Breakage(
        "REASSIGN OWNED BY memory_probe TO memory_owner; DROP OWNED BY memory_probe; DROP ROLE memory_probe; "
        "CREATE ROLE memory_probe LOGIN NOINHERIT; GRANT CONNECT ON DATABASE memory TO memory_probe; "
        "GRANT USAGE ON SCHEMA public TO memory_probe; "
        "GRANT memory_monitor TO memory_probe WITH INHERIT FALSE, SET TRUE",
        "foreign_objects",
        "role memory_probe",
    )
    assert told(found_with(admin_connection, anew)) == [("foreign_objects", "role memory_probe", True)]


@pytest.mark.django_db(transaction=True)
def test_an_older_manifest_is_told_and_stops_nothing(admin_connection) -> None:
    older = Breakage(
        "DO $$ BEGIN EXECUTE format('COMMENT ON ROLE memory_api IS %L', "
        "'memory_api ' || 'memory_api'::regrole::oid || ' older'); END $$",
        "foreign_objects",
        "role memory_api",
        loosens=False,
    )
    assert told(found_with(admin_connection, older)) == [(older.family, older.object, False)]


def test_a_server_that_is_too_old_is_named(monkeypatch, admin_connection) -> None:
    monkeypatch.setattr(verified_roles, "LEAST_VERSION", 990000)
    assert told(found_with(admin_connection)) == [("attributes", "server", True)]


@pytest.mark.django_db(transaction=True)
def test_what_is_broken_for_good_is_seen_by_the_login_of_the_processes(admin_connection) -> None:
    admin_connection.execute(f"GRANT SELECT ON {TABLE} TO memory_app")
    try:
        with pytest.raises(UnsafeDatabase, match=TABLE):
            refuse_unsafe_database()
        done = command("verify_roles", "--json")
    finally:
        admin_connection.execute(f"REVOKE SELECT ON {TABLE} FROM memory_app")
    assert done.returncode == 2
    assert json.loads(done.stdout) == [
        {
            "family": "rights",
            "object": f"table or view {TABLE}, memory_app",
            "expected": "no SELECT",
            "found": "granted",
            "loosens": True,
        }
    ]
    assert differences() == []


def command(*arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
    )


def test_verify_roles_runs_as_the_owner_and_says_no_difference() -> None:
    done = command("verify_roles")
    assert (done.returncode, done.stdout.strip()) == (0, "No difference.")


@pytest.mark.parametrize(
    ("make", "word"),
    [
        ("CREATE ROLE odd LOGIN SUPERUSER", "SUPERUSER"),
        ("CREATE ROLE odd LOGIN BYPASSRLS", "BYPASSRLS"),
        ("CREATE ROLE odd LOGIN; GRANT memory_owner TO odd", "memory_owner"),
        (
            "CREATE ROLE odd LOGIN; CREATE ROLE between; GRANT memory_owner TO between; GRANT between TO odd",
            "memory_owner",
        ),
    ],
)
def test_an_unsafe_login_is_refused_by_name(make: str, word: str, admin_connection: Any) -> None:
    admin_connection.execute(make)
    admin_connection.execute("GRANT memory_api, memory_staff, memory_maintenance, memory_monitor TO odd")
    database = admin_connection.info.dbname
    admin_connection.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO odd").format(sql.Identifier(database)))
    url = os.environ["DATABASE_URL"].replace("memory_app", "odd")
    try:
        done = command("check", "--database", "default", DATABASE_URL=url)
    finally:
        admin_connection.execute("DROP OWNED BY odd; DROP ROLE odd; DROP ROLE IF EXISTS between")
    assert done.returncode == 1
    assert "odd" in done.stderr
    assert word in done.stderr


def test_a_sane_login_passes_the_start_up_check() -> None:
    done = command("check", "--database", "default")
    assert done.returncode == 0, done.stderr


def test_the_printed_sql_holds_no_password() -> None:
    done = command("provision_roles", "--print")
    assert done.returncode == 0
    assert "memory_app" in done.stdout
    assert "for-tests-only" not in done.stdout
