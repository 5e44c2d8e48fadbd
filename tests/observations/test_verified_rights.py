"""What would let the journal's rows be seen, changed, copied or kept: each alone is named, and nothing starts."""

from typing import Any

import pytest

from apps.core import checks
from apps.core.checks import UnsafeDatabase, refuse_unsafe_database
from apps.core.db.verify import differences
from apps.core.db.verify.manifest import manifest
from tests.support.breakages import Breakage, found_with, told

pytestmark = pytest.mark.django_db(transaction=True)

RECORD, TEXT, FEEDBACK, STATE = (
    "observations_observation",
    "observations_observation_text",
    "observations_observation_feedback",
    "observations_maintenance_state",
)
JOURNAL = (RECORD, TEXT, FEEDBACK, STATE, "observations_enrolment", "observations_kill_switch")


def granted(right: str, table: str, role: str) -> Breakage:
    return Breakage(f"GRANT {right} ON {table} TO {role}", "rights", f"table or view {table}, {role}")


def column(right: str, table: str, role: str) -> Breakage:
    return Breakage(f"GRANT {right} ON {table} TO {role}", "rights", f"columns of {table}, {role}")


RIGHTS = [
    *(
        granted(right, table, "memory_api")
        for table in (RECORD, TEXT)
        for right in ("UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
    ),
    *(granted(right, FEEDBACK, "memory_api") for right in ("DELETE", "TRUNCATE")),
    *(
        granted(right, table, role)
        for table in (RECORD, TEXT, FEEDBACK, STATE)
        for role in ("memory_maintenance", "memory_monitor")
        for right in ("SELECT", "DELETE")
    ),
    granted("SELECT", RECORD, "memory_probe"),
    *(
        granted("SELECT", STATE, role)
        for role in ("memory_api", "memory_staff", "memory_app", "memory_probe", "PUBLIC")
    ),
    granted("SELECT", TEXT, "memory_staff"),
    granted("INSERT", RECORD, "memory_staff"),
    *(granted("SELECT", table, "PUBLIC") for table in JOURNAL[:3]),
    *(granted("SELECT", "observation_staff", role) for role in ("memory_api", "PUBLIC")),
    granted("SELECT", "observation_visible", "PUBLIC"),
    column("SELECT (query_fingerprint)", RECORD, "memory_staff"),
    column("UPDATE (record_expires_at)", RECORD, "memory_api"),
    column("INSERT (query_text)", TEXT, "memory_monitor"),
    column("SELECT (query_text)", TEXT, "PUBLIC"),
    Breakage(
        f"REVOKE INSERT ON {RECORD} FROM memory_api",
        "rights",
        f"table or view {RECORD}, memory_api",
        loosens=False,
    ),
    Breakage(
        f"REVOKE SELECT (corpus) ON {RECORD} FROM memory_staff",
        "rights",
        f"columns of {RECORD}, memory_staff",
        loosens=False,
    ),
]


def policy(sql: str, name: str, table: str) -> Breakage:
    return Breakage(sql, "policies", f"policy {name} on {table}")


def anew(table: str, name: str, form: str) -> Breakage:
    """The policy made again, other in one thing, with the note of the one before."""
    return policy(
        f"""
        DO $$ DECLARE was record; BEGIN
          SELECT pg_get_expr(polqual, polrelid) AS seen, pg_get_expr(polwithcheck, polrelid) AS checked,
                 obj_description(oid, 'pg_policy') AS note
          INTO was FROM pg_policy WHERE polname = '{name}' AND polrelid = '{table}'::regclass;
          DROP POLICY {name} ON {table};
          EXECUTE format('CREATE POLICY {name} ON {table} {form} USING (%s) WITH CHECK (%s)', was.seen, was.checked);
          EXECUTE format('COMMENT ON POLICY {name} ON {table} IS %L', was.note);
        END $$
        """,
        name,
        table,
    )


POLICIES = [
    *(
        Breakage(f"ALTER TABLE {table} {off} ROW LEVEL SECURITY", "policies", f"table {table}")
        for table in JOURNAL
        for off in ("DISABLE", "NO FORCE")
    ),
    *(policy(f"DROP POLICY {table}_owner ON {table}", f"{table}_owner", table) for table in (RECORD, TEXT)),
    policy(f"DROP POLICY {RECORD}_api ON {RECORD}", f"{RECORD}_api", RECORD),
    policy(f"CREATE POLICY extra ON {RECORD} FOR SELECT TO memory_api USING (true)", "extra", RECORD),
    anew(RECORD, f"{RECORD}_api", "AS RESTRICTIVE FOR ALL TO memory_api"),
    anew(FEEDBACK, f"{FEEDBACK}_api", "FOR UPDATE TO memory_api"),
    policy(f"ALTER POLICY {TEXT}_api ON {TEXT} TO memory_api, memory_staff", f"{TEXT}_api", TEXT),
    policy(f"ALTER POLICY {RECORD}_api ON {RECORD} USING (true)", f"{RECORD}_api", RECORD),
    policy(f"ALTER POLICY {RECORD}_api ON {RECORD} WITH CHECK (true)", f"{RECORD}_api", RECORD),
]


def function(sql: str, name: str, **more: Any) -> Breakage:
    return Breakage(sql, "functions_and_views", f"function {name}", **more)


def executable(name: str, role: str) -> Breakage:
    return function(f"GRANT EXECUTE ON FUNCTION {name} TO {role}", name)


STRAY = (
    "CREATE FUNCTION stray() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'; "
    "ALTER FUNCTION stray() OWNER TO memory_owner; "
)
# As it is declared, but the newest first.
ANOTHER_BODY = """
DO $$ DECLARE was text := pg_get_functiondef('observations_expire'::regproc); BEGIN
  EXECUTE replace(was, 'ORDER BY o.record_expires_at', 'ORDER BY o.record_expires_at DESC');
END $$
"""
CODE = [
    *(executable("observations_expire", role) for role in ("memory_monitor", "memory_api", "PUBLIC")),
    *(executable("observations_status", role) for role in ("memory_api", "memory_maintenance")),
    *(executable("observations_gate_opened", role) for role in ("memory_app", "memory_maintenance")),
    executable("observations_shorten", "memory_staff"),
    function(
        "REVOKE EXECUTE ON FUNCTION observations_expire FROM memory_maintenance",
        "observations_expire",
        loosens=False,
    ),
    function(
        STRAY + "REVOKE ALL ON FUNCTION stray() FROM PUBLIC; GRANT EXECUTE ON FUNCTION stray() TO memory_api",
        "stray()",
    ),
    function(STRAY, "stray()"),
    function("ALTER FUNCTION observations_expire SET search_path = public", "observations_expire"),
    function("ALTER FUNCTION observations_status VOLATILE", "observations_status"),
    function("ALTER FUNCTION observations_expire SECURITY INVOKER", "observations_expire"),
    function(ANOTHER_BODY, "observations_expire"),
    *(
        Breakage(f"ALTER VIEW {view} SET (security_invoker = false)", "functions_and_views", f"view {view}")
        for view in ("observation_visible", "observation_staff")
    ),
    Breakage(
        "DROP VIEW observation_staff CASCADE", "functions_and_views", "view observation_staff", loosens=False
    ),
    Breakage(
        f"""
        DROP VIEW observation_staff CASCADE; CREATE TABLE observation_staff (id uuid);
        ALTER TABLE observation_staff OWNER TO memory_owner; GRANT SELECT ON observation_staff TO memory_staff;
        DO $$ BEGIN EXECUTE format('COMMENT ON TABLE observation_staff IS %L', 'observation_staff '
          || 'observation_staff'::regclass::oid || ' {manifest().checksums()["observation_staff"]}');
        END $$
        """,
        "functions_and_views",
        "view observation_staff",
    ),
    Breakage(
        "CREATE VIEW stray WITH (security_invoker = true) AS SELECT 1 AS one; ALTER VIEW stray OWNER TO memory_owner",
        "functions_and_views",
        "view stray",
        loosens=False,
    ),
]


def foreign(sql: str, named: str) -> Breakage:
    return Breakage(sql, "foreign_objects", named)


FIXED = "observations_record_fixed"
FOREIGN = [
    *(
        foreign(f"ALTER {kind} {name} OWNER TO memory_admin", f"{shown} {name}")
        for kind, shown, name in (
            ("VIEW", "relation", "observation_staff"),
            ("FUNCTION", "function", "observations_status"),
        )
    ),
    foreign(f"COMMENT ON TABLE {TEXT} IS NULL", f"table public.{TEXT}"),
    foreign(f"COMMENT ON TABLE {TEXT} IS '{TEXT} 1 0'", f"table public.{TEXT}"),
    foreign("COMMENT ON VIEW observation_staff IS NULL", "view public.observation_staff"),
    foreign(f"ALTER TABLE {RECORD} DISABLE TRIGGER {FIXED}", f"trigger {FIXED} on {RECORD}"),
    foreign(f"DROP TRIGGER {FIXED} ON {RECORD}", f"trigger {FIXED} on {RECORD}"),
    foreign(
        f"DROP TRIGGER {FIXED} ON {RECORD}; CREATE TRIGGER {FIXED} AFTER UPDATE ON {RECORD} "
        f"FOR EACH ROW EXECUTE FUNCTION {FIXED}()",
        f"trigger {FIXED} on {RECORD}",
    ),
    foreign(
        f"CREATE TRIGGER stray BEFORE INSERT ON {RECORD} FOR EACH ROW EXECUTE FUNCTION {FIXED}()",
        f"trigger stray on {RECORD}",
    ),
    foreign(f"CREATE RULE stray AS ON DELETE TO {RECORD} DO INSTEAD NOTHING", f"rule stray on {RECORD}"),
    foreign(
        f"CREATE TABLE stray () INHERITS ({TEXT}); ALTER TABLE stray OWNER TO memory_owner", "child stray"
    ),
    foreign(f"CREATE PUBLICATION stray FOR TABLE {TEXT}", f"publication stray of {TEXT}"),
    foreign("CREATE PUBLICATION stray FOR ALL TABLES", "publication stray of all tables"),
    foreign(
        f"CREATE MATERIALIZED VIEW stray AS SELECT query_text FROM {TEXT}; "
        "ALTER MATERIALIZED VIEW stray OWNER TO memory_owner",
        "materialized view stray",
    ),
]
BREAKAGES = [*RIGHTS, *POLICIES, *CODE, *FOREIGN]


def check_each(broken: Breakage, admin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named, alone, and a process starts on it only when it loosens nothing."""
    found = found_with(admin, broken)
    assert told(found) == [(broken.family, broken.object, broken.loosens)]
    monkeypatch.setattr(checks, "differences", lambda: found)
    if broken.loosens:
        with pytest.raises(UnsafeDatabase, match="not as declared"):
            refuse_unsafe_database()
    else:
        refuse_unsafe_database()


@pytest.mark.parametrize("broken", BREAKAGES, ids=str)
def test_each_breakage_of_the_journal_alone_is_named_and_stops_a_start(
    broken, admin_connection, monkeypatch
) -> None:
    check_each(broken, admin_connection, monkeypatch)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (RIGHTS[0], POLICIES[3]),
        (POLICIES[12], FOREIGN[0]),
        (CODE[0], RIGHTS[1]),
    ],
    ids=lambda broken: broken.family,
)
def test_two_breakages_at_once_are_both_named(first: Breakage, second: Breakage, admin_connection) -> None:
    found = found_with(admin_connection, first, second)
    wanted = {(each.family, each.object, each.loosens) for each in (first, second)}
    assert len(found) == 2
    assert set(told(found)) == wanted


def constraints(admin: Any, kind: str, *tables: str) -> list[tuple[str, str, str]]:
    """Table, name and definition of the checks, or of the keys over several columns, of these tables."""
    return admin.execute(  # type: ignore[no-any-return]
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE contype = %s AND (contype = 'c' OR cardinality(conkey) > 1) AND conrelid::regclass::text = ANY (%s) "
        "AND conname <> ALL (%s) ORDER BY 1, 2",
        [kind, list(tables), ["observations_observation_feedback_rank_check"]],
    ).fetchall()


def test_a_lost_weaker_or_unproven_key_of_the_journal_is_named(admin_connection, monkeypatch) -> None:
    keys = constraints(admin_connection, "f", RECORD, TEXT, FEEDBACK)
    assert len(keys) == 6
    for table, name, definition in keys:
        drop = f'ALTER TABLE {table} DROP CONSTRAINT "{name}"'
        add = f'{drop}; ALTER TABLE {table} ADD CONSTRAINT "{name}" '
        for broken in {drop, f"{add}{definition} NOT VALID", add + definition.partition(" ON DELETE")[0]}:
            if broken == add + definition:
                continue  # it never cascaded
            check_each(
                Breakage(broken, "policies", f"foreign key {name} on {table}"), admin_connection, monkeypatch
            )


def test_a_lost_altered_or_unproven_check_of_the_journal_is_named(admin_connection, monkeypatch) -> None:
    found = constraints(admin_connection, "c", RECORD, TEXT)
    names = {name for _, name, _ in found}
    assert {"observations_observation_longest", "observations_observationtext_length"} <= names
    assert len(found) >= 8
    for table, name, definition in found:
        drop = f'ALTER TABLE {table} DROP CONSTRAINT "{name}"'
        add = f'{drop}; ALTER TABLE {table} ADD CONSTRAINT "{name}" '
        for broken in (drop, f"ALTER TABLE {table} ALTER CONSTRAINT", add + "CHECK (true)"):
            if broken.endswith("ALTER CONSTRAINT"):
                broken = f"{add}{definition} NOT VALID"
            check_each(
                Breakage(broken, "policies", f"check {name} on {table}"), admin_connection, monkeypatch
            )


def test_a_deadline_one_day_longer_is_another_condition_though_it_keeps_its_sign(admin_connection) -> None:
    """Whoever alters a check may copy the comment on it; the digest in it is of the declared condition."""
    name = "observations_observation_longest"
    altered = Breakage(
        f"""
        DO $$ DECLARE sign text := (
          SELECT obj_description(oid, 'pg_constraint') FROM pg_constraint WHERE conname = '{name}');
        BEGIN
          ALTER TABLE {RECORD} DROP CONSTRAINT {name};
          ALTER TABLE {RECORD} ADD CONSTRAINT {name} CHECK (record_expires_at <= observed_at + interval '2184 hours');
          EXECUTE format('COMMENT ON CONSTRAINT {name} ON {RECORD} IS %L', sign);
        END $$
        """,
        "policies",
        f"check {name} on {RECORD}",
    )
    (found,) = found_with(admin_connection, altered)
    assert (found.object, found.found) == (altered.object, "another condition")


def test_after_all_of_it_nothing_differs() -> None:
    assert differences() == []
