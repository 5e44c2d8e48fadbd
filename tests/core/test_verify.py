"""Each loosening of the database is named, alone, under its family."""

import os
import subprocess
import sys

import pytest
from psycopg import sql

from apps.core.db.verify import differences
from tests.conftest import ROOT

pytestmark = pytest.mark.django_db


def test_a_migrated_database_has_no_difference() -> None:
    assert differences() == []


# (what is broken by the administrator, how it is mended, family, a part of the named object)
BREAKAGES = [
    ("ALTER ROLE memory_app BYPASSRLS", "ALTER ROLE memory_app NOBYPASSRLS", "attributes", "memory_app"),
    ("ALTER ROLE memory_app CREATEROLE", "ALTER ROLE memory_app NOCREATEROLE", "attributes", "memory_app"),
    ("ALTER ROLE memory_app CREATEDB", "ALTER ROLE memory_app NOCREATEDB", "attributes", "memory_app"),
    ("ALTER ROLE memory_app REPLICATION", "ALTER ROLE memory_app NOREPLICATION", "attributes", "memory_app"),
    ("ALTER ROLE memory_app SUPERUSER", "ALTER ROLE memory_app NOSUPERUSER", "attributes", "memory_app"),
    ("ALTER ROLE memory_api LOGIN", "ALTER ROLE memory_api NOLOGIN", "attributes", "memory_api"),
    (
        "ALTER ROLE memory_app SET row_security = off",
        "ALTER ROLE memory_app RESET row_security",
        "attributes",
        "row_security",
    ),
    (
        "ALTER ROLE memory_app SET memory.user_id = '1'",
        "ALTER ROLE memory_app RESET memory.user_id",
        "attributes",
        "memory.user_id",
    ),
    ("GRANT memory_staff TO memory_api", "REVOKE memory_staff FROM memory_api", "memberships", "memory_api"),
    (
        "GRANT memory_owner TO memory_probe",
        "REVOKE memory_owner FROM memory_probe",
        "memberships",
        "memory_probe",
    ),
    (
        "GRANT pg_read_all_data TO memory_app",
        "REVOKE pg_read_all_data FROM memory_app",
        "memberships",
        "memory_app",
    ),
    (
        "GRANT memory_api TO memory_app WITH ADMIN OPTION",
        "REVOKE ADMIN OPTION FOR memory_api FROM memory_app",
        "memberships",
        "memory_app",
    ),
    (
        "GRANT memory_api TO memory_app WITH INHERIT TRUE",
        "GRANT memory_api TO memory_app WITH INHERIT FALSE",
        "memberships",
        "memory_app",
    ),
    (
        "GRANT CREATE ON SCHEMA public TO memory_api",
        "REVOKE CREATE ON SCHEMA public FROM memory_api",
        "rights",
        "schema",
    ),
    (
        "GRANT SELECT ON accounts_principal TO memory_app",
        "REVOKE SELECT ON accounts_principal FROM memory_app",
        "rights",
        "accounts_principal",
    ),
    (
        "GRANT TRUNCATE ON accounts_apitoken TO memory_api",
        "REVOKE TRUNCATE ON accounts_apitoken FROM memory_api",
        "rights",
        "accounts_apitoken",
    ),
    (
        "GRANT SELECT (hash_key) ON accounts_principal TO memory_staff",
        "REVOKE SELECT (hash_key) ON accounts_principal FROM memory_staff",
        "rights",
        "accounts_principal",
    ),
    ("GRANT SELECT ON auth_user TO PUBLIC", "REVOKE SELECT ON auth_user FROM PUBLIC", "rights", "auth_user"),
    (
        "ALTER TABLE accounts_principal NO FORCE ROW LEVEL SECURITY",
        "ALTER TABLE accounts_principal FORCE ROW LEVEL SECURITY",
        "policies",
        "accounts_principal",
    ),
    (
        "ALTER TABLE accounts_principal DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE accounts_principal ENABLE ROW LEVEL SECURITY",
        "policies",
        "accounts_principal",
    ),
    (
        "CREATE POLICY extra ON accounts_principal FOR SELECT TO memory_api USING (true)",
        "DROP POLICY extra ON accounts_principal",
        "policies",
        "extra",
    ),
    (
        "GRANT EXECUTE ON FUNCTION accounts_find_token TO PUBLIC",
        "REVOKE EXECUTE ON FUNCTION accounts_find_token FROM PUBLIC",
        "functions_and_views",
        "accounts_find_token",
    ),
    (
        "ALTER FUNCTION accounts_find_token RESET search_path",
        "ALTER FUNCTION accounts_find_token SET search_path = pg_catalog, pg_temp",
        "functions_and_views",
        "accounts_find_token",
    ),
    (
        "CREATE FUNCTION stray() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'; "
        "ALTER FUNCTION stray OWNER TO memory_owner; REVOKE ALL ON FUNCTION stray FROM PUBLIC",
        "DROP FUNCTION stray",
        "functions_and_views",
        "stray",
    ),
    ("CREATE TABLE stray (id int)", "DROP TABLE stray", "foreign_objects", "stray"),
    (
        "CREATE PUBLICATION stray FOR TABLE accounts_principal",
        "DROP PUBLICATION stray",
        "foreign_objects",
        "stray",
    ),
    (
        "CREATE RULE stray AS ON DELETE TO accounts_principal DO INSTEAD NOTHING",
        "DROP RULE stray ON accounts_principal",
        "foreign_objects",
        "stray",
    ),
]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("broken", "mended", "family", "named"), BREAKAGES, ids=lambda value: str(value)[:60]
)
def test_each_breakage_alone_is_named(broken, mended, family, named, admin_connection) -> None:
    admin_connection.execute(broken)
    try:
        found = differences()
    finally:
        admin_connection.execute(mended)
    assert found, broken
    assert {difference.family for difference in found} == {family}
    assert all(named in difference.object for difference in found)
    assert any(difference.loosens for difference in found)
    assert differences() == []


@pytest.mark.django_db(transaction=True)
def test_an_altered_policy_is_named(admin_connection) -> None:
    admin_connection.execute("ALTER POLICY accounts_principal_api ON accounts_principal USING (true)")
    try:
        found = differences()
        assert [(d.family, "accounts_principal_api" in d.object) for d in found] == [("policies", True)]
    finally:
        admin_connection.execute(
            "ALTER POLICY accounts_principal_api ON accounts_principal USING (id IN "
            "((SELECT nullif(current_setting('memory.principal_id', true), '')::uuid), "
            "(SELECT nullif(current_setting('memory.shared_principal_id', true), '')::uuid)))"
        )
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
def test_an_unsafe_login_is_refused_by_name(make, word, admin_connection) -> None:
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
