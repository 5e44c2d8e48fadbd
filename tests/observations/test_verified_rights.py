"""What would let the journal's rows be seen, changed, copied or kept: each alone is named, and nothing starts."""

from typing import Any

import pytest

from apps.core.checks import UnsafeDatabase, refuse_unsafe_database
from apps.core.db.verify import FAMILIES, differences
from apps.core.db.verify.difference import Difference

pytestmark = pytest.mark.django_db(transaction=True)

RECORD, TEXT, FEEDBACK, STATE = (
    "observations_observation",
    "observations_observation_text",
    "observations_observation_feedback",
    "observations_maintenance_state",
)
Breakage = tuple[str, str, str, str]
"""What breaks it, what mends it, the family, what the object is named after."""


def granted(right: str, table: str, role: str) -> Breakage:
    return (
        f"GRANT {right} ON {table} TO {role}",
        f"REVOKE {right} ON {table} FROM {role}",
        "rights",
        f"{table}, {role}",
    )


def executable(function: str, role: str) -> Breakage:
    return (
        f"GRANT EXECUTE ON FUNCTION {function} TO {role}",
        f"REVOKE EXECUTE ON FUNCTION {function} FROM {role}",
        "functions_and_views",
        f"function {function}",
    )


def security_off(table: str, word: str) -> Breakage:
    off = {"ENABLE": "DISABLE", "FORCE": "NO FORCE"}[word]
    sql = f"ALTER TABLE {table} {{}} ROW LEVEL SECURITY"
    return sql.format(off), sql.format(word), "policies", f"table {table}"


BREAKAGES: list[Breakage] = [
    *(
        granted(right, table, "memory_api")
        for table in (RECORD, TEXT)
        for right in ("UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
    ),
    *(granted(right, FEEDBACK, "memory_api") for right in ("DELETE", "TRUNCATE")),
    *(granted("SELECT", RECORD, role) for role in ("memory_maintenance", "memory_monitor", "memory_probe")),
    *(
        granted("SELECT", STATE, role)
        for role in ("memory_api", "memory_staff", "memory_maintenance", "memory_monitor", "memory_app")
    ),
    granted("SELECT", TEXT, "memory_staff"),
    granted("SELECT", RECORD, "PUBLIC"),
    granted("INSERT", RECORD, "memory_staff"),
    (
        f"GRANT SELECT (query_fingerprint) ON {RECORD} TO memory_staff",
        f"REVOKE SELECT (query_fingerprint) ON {RECORD} FROM memory_staff",
        "rights",
        f"columns of {RECORD}, memory_staff",
    ),
    (
        f"GRANT UPDATE (record_expires_at) ON {RECORD} TO memory_api",
        f"REVOKE UPDATE (record_expires_at) ON {RECORD} FROM memory_api",
        "rights",
        f"columns of {RECORD}, memory_api",
    ),
    *(security_off(table, word) for table in (RECORD, TEXT, FEEDBACK) for word in ("ENABLE", "FORCE")),
    (
        f"CREATE POLICY extra ON {RECORD} FOR SELECT TO memory_api USING (true)",
        f"DROP POLICY extra ON {RECORD}",
        "policies",
        f"policy extra on {RECORD}",
    ),
    *(executable("observations_expire", role) for role in ("memory_monitor", "memory_api", "PUBLIC")),
    *(executable("observations_status", role) for role in ("memory_api", "memory_maintenance")),
    *(executable("observations_gate_opened", role) for role in ("memory_app", "memory_maintenance")),
    executable("observations_shorten", "memory_staff"),
    (
        "ALTER FUNCTION observations_expire SET search_path = public",
        "ALTER FUNCTION observations_expire SET search_path = pg_catalog, pg_temp",
        "functions_and_views",
        "function observations_expire",
    ),
    (
        "ALTER FUNCTION observations_status VOLATILE",
        "ALTER FUNCTION observations_status STABLE",
        "functions_and_views",
        "function observations_status",
    ),
    *(
        (
            f"ALTER VIEW {view} SET (security_invoker = false)",
            f"ALTER VIEW {view} SET (security_invoker = true)",
            "functions_and_views",
            f"view {view}",
        )
        for view in ("observation_visible", "observation_staff")
    ),
    (
        f"ALTER TABLE {RECORD} DISABLE TRIGGER observations_record_fixed",
        f"ALTER TABLE {RECORD} ENABLE TRIGGER observations_record_fixed",
        "foreign_objects",
        f"trigger observations_record_fixed on {RECORD}",
    ),
    (
        f"CREATE TRIGGER stray BEFORE INSERT ON {RECORD} FOR EACH ROW EXECUTE FUNCTION observations_record_fixed()",
        f"DROP TRIGGER stray ON {RECORD}",
        "foreign_objects",
        f"trigger stray on {RECORD}",
    ),
    (
        f"CREATE RULE stray AS ON DELETE TO {RECORD} DO INSTEAD NOTHING",
        f"DROP RULE stray ON {RECORD}",
        "foreign_objects",
        f"rule stray on {RECORD}",
    ),
    (
        f"CREATE TABLE stray () INHERITS ({TEXT}); ALTER TABLE stray OWNER TO memory_owner",
        "DROP TABLE stray",
        "foreign_objects",
        "child stray",
    ),
    (
        f"CREATE PUBLICATION stray FOR TABLE {TEXT}",
        "DROP PUBLICATION stray",
        "foreign_objects",
        f"publication stray of {TEXT}",
    ),
    (
        "CREATE PUBLICATION stray FOR ALL TABLES",
        "DROP PUBLICATION stray",
        "foreign_objects",
        "publication stray",
    ),
    (
        "ALTER VIEW observation_staff OWNER TO CURRENT_USER",
        "ALTER VIEW observation_staff OWNER TO memory_owner",
        "foreign_objects",
        "observation_staff",
    ),
]


def found_when(admin: Any, *broken: Breakage) -> list[Difference]:
    """The differences while these are broken; also that no process starts then."""
    for each in broken:
        admin.execute(each[0])
    try:
        found = differences()
        with pytest.raises(UnsafeDatabase):
            refuse_unsafe_database()
        return found
    finally:
        for each in broken:
            admin.execute(each[1])


@pytest.mark.parametrize("broken", BREAKAGES, ids=lambda broken: broken[0][:90])
def test_each_breakage_of_the_journal_alone_is_named(broken: Breakage, admin_connection) -> None:
    found = found_when(admin_connection, broken)
    assert found
    assert {difference.family for difference in found} == {broken[2]}
    assert all(broken[3] in difference.object for difference in found)
    assert any(difference.loosens for difference in found)


def test_two_breakages_at_once_are_both_named(admin_connection) -> None:
    found = found_when(admin_connection, BREAKAGES[0], security_off(TEXT, "FORCE"))
    assert [each.family for each in found] == ["rights", "policies"]
    assert RECORD in found[0].object
    assert TEXT in found[1].object


# (what breaks it, what the object is named after), each undone by rolling back.
LOST = [
    *((f'DROP POLICY "{table}_owner" ON {table}', f"policy {table}_owner") for table in (RECORD, TEXT)),
    (f'DROP POLICY "{RECORD}_api" ON {RECORD}', f"policy {RECORD}_api"),
    (f'ALTER POLICY "{RECORD}_api" ON {RECORD} USING (true)', f"policy {RECORD}_api"),
    (f'ALTER POLICY "{RECORD}_api" ON {RECORD} WITH CHECK (true)', f"policy {RECORD}_api"),
    (f'ALTER POLICY "{TEXT}_api" ON {TEXT} TO memory_api, memory_staff', f"policy {TEXT}_api"),
    (
        f"ALTER TABLE {TEXT} DROP CONSTRAINT observations_observationtext_length",
        "observations_observationtext_length",
    ),
    (
        f"ALTER TABLE {RECORD} DROP CONSTRAINT observations_observation_longest; ALTER TABLE {RECORD} "
        "ADD CONSTRAINT observations_observation_longest "
        "CHECK (record_expires_at <= observed_at + interval '2160 hours') NOT VALID",
        "observations_observation_longest",
    ),
]


def differences_of(family: str, admin: Any, broken: str) -> list[Difference]:
    """What a family says inside of a transaction in which it is broken, which is rolled back."""
    cursor = admin.cursor()
    cursor.execute("BEGIN")
    try:
        cursor.execute(broken)
        return list(FAMILIES[family](cursor))
    finally:
        cursor.execute("ROLLBACK")


@pytest.mark.parametrize(("broken", "named"), LOST, ids=lambda value: value[:90])
def test_a_lost_or_altered_promise_is_named(admin_connection, broken: str, named: str) -> None:
    found = differences_of("policies", admin_connection, broken)
    assert found
    assert all(named in difference.object and difference.loosens for difference in found)


def keys_of(admin: Any, *tables: str) -> list[tuple[str, str, str]]:
    """Composite foreign keys of the tables: table, name, definition."""
    return admin.execute(  # type: ignore[no-any-return]
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE contype = 'f' AND cardinality(conkey) > 1 AND conrelid::regclass::text = ANY (%s)",
        [list(tables)],
    ).fetchall()


def test_a_lost_or_weaker_key_to_the_record_is_named(admin_connection) -> None:
    keys = keys_of(admin_connection, TEXT, FEEDBACK)
    assert len(keys) >= 2
    for table, name, definition in keys:
        drop = f'ALTER TABLE {table} DROP CONSTRAINT "{name}"'
        weaker = definition.replace(" ON DELETE CASCADE", "")
        for broken in (
            drop,
            f'{drop}; ALTER TABLE {table} ADD CONSTRAINT "{name}" {definition} NOT VALID',
            f'{drop}; ALTER TABLE {table} ADD CONSTRAINT "{name}" {weaker}',
        ):
            if broken.endswith(weaker) and weaker == definition:
                continue
            found = differences_of("policies", admin_connection, broken)
            assert [name in each.object for each in found] == [True], broken


def test_a_view_that_is_none_or_shows_more_is_named(admin_connection) -> None:
    for broken in (
        "DROP VIEW observation_staff CASCADE",
        "DROP VIEW observation_staff CASCADE; CREATE TABLE observation_staff (id uuid)",
        "CREATE VIEW stray WITH (security_invoker = true) AS SELECT 1 AS one",
    ):
        found = differences_of("functions_and_views", admin_connection, broken)
        assert len(found) == 1, (broken, found)


def test_a_right_on_a_view_or_a_large_object_is_named(admin_connection) -> None:
    for role in ("memory_api", "PUBLIC"):
        found = differences_of("rights", admin_connection, f"GRANT SELECT ON observation_staff TO {role}")
        assert [each.object for each in found] == [f"table or view observation_staff, {role}"]
    found = differences_of(
        "rights", admin_connection, "SELECT lo_create(4242); GRANT SELECT ON LARGE OBJECT 4242 TO memory_api"
    )
    assert [each.object for each in found] == ["large objects, memory_api"]


def test_after_all_of_it_nothing_differs() -> None:
    assert differences() == []
