"""The journal's tables as memory_api and memory_staff meet them: deadlines hide at once, and nothing is rewritten."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction
from psycopg import errors

from apps.core.db.sessions import act_for, principal_session, staff_session
from apps.core.ids import uuid7
from apps.observations.models.visible import VisibleObservation
from tests.support import journal
from tests.support.factories import World, make_principal, make_staff
from tests.support.journal import HOUR, count, feedback, record, seen
from tests.support.traces import issue, ranked, save

pytestmark = pytest.mark.django_db(transaction=True)

TABLES = ("observations_observation", "observations_observation_text", "observations_observation_feedback")
DAY = 24 * HOUR


@pytest.fixture
def other(world: World) -> Any:
    return make_principal(world.workspace)


@pytest.fixture
def six(world: World, other, owner_connection) -> dict[str, UUID]:
    """Five rows of the world's principal and one of another."""
    owner, mine = owner_connection, world.principal
    # What is older than its life can only have been written before: the checks look at spans, not at now.
    rows = {
        "text gone": record(owner, mine, ago=2 * DAY, text="billing rollback", text_life=DAY),
        "at the end": record(owner, mine, ago=2160 * HOUR),
        "a day past": record(owner, mine, ago=2184 * HOUR),
        "a day past too": record(owner, mine, ago=2184 * HOUR),
        "last hour": record(owner, mine, ago=2159 * HOUR),
        "theirs": record(owner, other, text="something else"),
    }
    feedback(owner, mine, rows["a day past"])
    feedback(owner, mine, rows["last hour"])
    return rows


def run_as(principal, sql: str, *values: Any) -> Any:
    with principal_session(principal), connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall() if cursor.description else cursor.rowcount


def refusal(principal, sql: str, *values: Any) -> str | None:
    """The SQLSTATE by which a statement of the principal is refused."""
    with pytest.raises(DatabaseError) as refused:
        run_as(principal, sql, *values)
    return refused.value.__cause__.sqlstate  # type: ignore[union-attr]


def test_without_an_identity_nothing_is_seen_or_written(world: World, owner_connection) -> None:
    record(owner_connection, world.principal, text="t")
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('role', 'memory_api', true)")
        for table in TABLES:
            cursor.execute(f"SELECT count(*) FROM {table}")
            assert cursor.fetchone() == (0,)
        with pytest.raises(DatabaseError) as refused:
            record(cursor, world.principal)
        assert isinstance(refused.value.__cause__, errors.InsufficientPrivilege)
        transaction.set_rollback(True)


def test_expired_rows_their_feedback_and_texts_are_hidden_before_any_cleanup(
    world: World, six, owner_connection
) -> None:
    me = world.principal
    assert count(owner_connection, "observation", me) == 5
    assert seen(me, "observations_observation") == 2
    assert seen(me, "observations_observation_text") == 0
    assert run_as(me, "SELECT observation_id FROM observations_observation_feedback") == [(six["last hour"],)]
    shown = {
        row[0]: row[1:]
        for row in run_as(
            me,
            "SELECT id, text_disposition, query_text, expires_at - observed_at = interval '2160 hours' "
            "FROM observation_visible",
        )
    }
    assert shown == {
        six["text gone"]: ("expired", None, True),
        six["last hour"]: ("disabled", None, True),
    }


def test_the_earlier_deadline_is_shown(world: World, owner_connection) -> None:
    key = record(owner_connection, world.principal, hours=48, text="t", text_life=24 * HOUR)
    sql = "SELECT query_text, extract(epoch FROM expires_at - observed_at) FROM observation_visible WHERE id = %s"
    assert run_as(world.principal, sql, key) == [("t", 24 * 3600)]


INSERT_FEEDBACK = (
    "INSERT INTO observations_observation_feedback (id, workspace_id, principal_id, observation_id, hit_id, helpful, "
    "created_at, updated_at) VALUES (%s, %s, %s, %s, %s, true, now(), now())"
)


def insert(principal, **more: Any) -> str:
    """The SQLSTATE of an insert by the principal's own session."""
    owner = more.pop("owner", principal)
    with pytest.raises(DatabaseError) as refused:
        with principal_session(principal), connection.cursor() as cursor:
            record(cursor, owner, **more)
    return refused.value.__cause__.sqlstate  # type: ignore[union-attr]


def test_rows_of_others_and_times_out_of_bounds_are_refused(world: World, other, owner_connection) -> None:
    me = world.principal
    theirs = record(owner_connection, other)
    assert insert(me, owner=other) == "42501"
    assert (
        refusal(me, INSERT_FEEDBACK, uuid7(), me.workspace_id, me.principal_id, theirs, journal.HIT)
        == "42501"
    )
    assert insert(me, ago=-DAY) == "42501"
    assert insert(me, ago=2184 * HOUR) == "42501"
    assert insert(me, ago=3 * HOUR, hours=2) == "42501"
    with principal_session(me), connection.cursor() as cursor:
        record(cursor, me, ago=timedelta(minutes=-4))


def test_keys_cannot_cross_owners(world: World, other, owner_connection) -> None:
    theirs = record(owner_connection, other)
    with pytest.raises(errors.ForeignKeyViolation):
        feedback(owner_connection, world.principal, theirs)


@pytest.mark.parametrize(
    "more",
    [
        {"hours": 2161},
        {"text": "t", "text_life": 2184 * HOUR},
        {"corpus": "private", "disposition": "retained", "text": "t"},
        {"text": "t", "disposition": "filtered"},
        {"text": ""},
        {"text": "x" * 4001},
        {"disposition": "kept"},
        {"corpus": "public"},
        {"hits": tuple(uuid7() for _ in range(101))},
    ],
    ids=lambda more: ",".join(more),
)
def test_what_the_checks_refuse(world: World, owner_connection, more) -> None:
    with pytest.raises((errors.CheckViolation, errors.ForeignKeyViolation)):
        record(owner_connection, world.principal, **more)


def test_a_life_over_a_clock_change_is_counted_in_hours(world: World, owner_connection) -> None:
    # In New York the clocks went forward on 8 March 2026; 90 calendar days would be 2159 hours.
    owner_connection.execute("SET TIME ZONE 'America/New_York'")
    before = datetime(2026, 3, 1, 12, tzinfo=UTC)
    key = record(owner_connection, world.principal, observed_at=before, text="t")
    found = owner_connection.execute(
        "SELECT extract(epoch FROM record_expires_at - observed_at) FROM observations_observation WHERE id = %s",
        [key],
    ).fetchone()
    assert found == (2160 * 3600,)
    with pytest.raises(errors.CheckViolation):
        record(owner_connection, world.principal, observed_at=before, hours=2161)


UPDATES = {
    "later record": "UPDATE observations_observation SET record_expires_at = record_expires_at + interval '1 second'",
    "later text": "UPDATE observations_observation_text SET text_expires_at = text_expires_at + interval '1 second'",
    "another text": "UPDATE observations_observation_text SET query_text = 'x'",
    "another snapshot": "UPDATE observations_observation SET snapshot = '{\"hits\": []}'",
    "another owner": "UPDATE observations_observation SET purpose = 'x'",
    "another trace": "UPDATE observations_observation SET trace_id = gen_random_uuid()",
    "another hit": "UPDATE observations_observation_feedback SET hit_id = gen_random_uuid()",
    "back in": "UPDATE observations_enrolment SET withdrawn_at = NULL",
    "less erased": "UPDATE observations_enrolment SET erased_before = NULL",
}


@pytest.mark.parametrize("name", UPDATES, ids=str)
def test_rows_are_not_rewritten_even_by_the_owner_of_the_tables(on: World, owner_connection, name) -> None:
    key = record(owner_connection, on.principal, hours=100, text="t", text_life=50 * HOUR)
    feedback(owner_connection, on.principal, key)
    owner_connection.execute("UPDATE observations_enrolment SET withdrawn_at = now(), erased_before = now()")
    with pytest.raises(errors.CheckViolation):
        owner_connection.execute(UPDATES[name])


def test_a_deadline_may_move_earlier(world: World, owner_connection) -> None:
    key = record(owner_connection, world.principal, hours=100, text="t")
    for table, column in (
        ("observation", "record_expires_at"),
        ("observation_text", "text_expires_at"),
    ):
        owner_connection.execute(f"UPDATE observations_{table} SET {column} = {column} - interval '1 hour'")
    assert run_as(world.principal, "SELECT id FROM observation_visible") == [(key,)]


RIGHTS = {
    "observations_observation": {"SELECT", "INSERT"},
    "observations_observation_text": {"SELECT", "INSERT"},
    "observations_observation_feedback": {"SELECT", "INSERT", "UPDATE"},
    "observations_maintenance_state": set(),
}


@pytest.mark.parametrize("table", RIGHTS, ids=str)
def test_rights_of_memory_api_are_these_and_no_more(table, owner_connection) -> None:
    for privilege in ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"):
        held = owner_connection.execute(
            "SELECT has_table_privilege('memory_api', %s, %s)", [table, privilege]
        ).fetchone()[0]
        assert held == (privilege in RIGHTS[table]), privilege
    for role in ("memory_maintenance", "memory_monitor"):
        for privilege in ("SELECT", "INSERT", "UPDATE", "DELETE"):
            sql = "SELECT has_table_privilege(%s, %s, %s)"
            assert not owner_connection.execute(sql, [role, table, privilege]).fetchone()[0]


def test_a_long_transaction_stops_seeing_what_expires_meanwhile(world: World, owner_connection) -> None:
    record(owner_connection, world.principal, text="t", ago=timedelta(0), text_life=timedelta(seconds=0.1))
    with principal_session(world.principal), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM observation_visible WHERE query_text IS NOT NULL")
        assert cursor.fetchone() == (1,)
        time.sleep(0.2)
        cursor.execute("SELECT count(*) FROM observation_visible WHERE query_text IS NOT NULL")
        assert cursor.fetchone() == (0,)


def test_rolling_back_a_savepoint_brings_the_identity_back(world: World, other, owner_connection) -> None:
    record(owner_connection, world.principal)
    with principal_session(world.principal), connection.cursor() as cursor:
        try:
            with transaction.atomic():
                cursor.execute(
                    "SELECT set_config('memory.principal_id', %s, true)", [str(other.principal_id)]
                )
                raise LookupError
        except LookupError:
            pass
        cursor.execute("SELECT count(*) FROM observations_observation")
        assert cursor.fetchone() == (1,)


def test_the_end_of_a_trace_clears_its_id_and_nothing_else(world: World, owner_connection) -> None:
    with principal_session(world.principal):
        trace = save([ranked(issue(1))]).id
    key = record(owner_connection, world.principal, text="t")
    # As the insert of a search has it; the trigger forbids setting it later.
    owner_connection.execute("ALTER TABLE observations_observation DISABLE TRIGGER observations_record_fixed")
    owner_connection.execute("UPDATE observations_observation SET trace_id = %s", [trace])
    owner_connection.execute("ALTER TABLE observations_observation ENABLE TRIGGER observations_record_fixed")
    sql = "SELECT to_jsonb(o) - 'trace_id', trace_id FROM observations_observation o WHERE id = %s"
    before = owner_connection.execute(sql, [key]).fetchone()
    assert before[1] == trace
    owner_connection.execute("DELETE FROM traces_trace WHERE id = %s", [trace])
    assert owner_connection.execute(sql, [key]).fetchone() == (before[0], None)


# Staff.


def test_staff_see_no_fingerprint_and_no_text(world: World, owner_connection) -> None:
    record(owner_connection, world.principal, text="t")
    record(owner_connection, world.principal, ago=2 * DAY, text="gone", text_life=DAY)
    record(owner_connection, world.principal, ago=2161 * HOUR)
    with staff_session(make_staff(world.workspace, "view_traces")), connection.cursor() as cursor:
        cursor.execute(
            "SELECT text_disposition, text_expires_at IS NOT NULL FROM observation_staff ORDER BY observed_at DESC"
        )
        assert cursor.fetchall() == [("retained", True), ("expired", False)]
    for sql in (
        "SELECT query_fingerprint FROM observations_observation",
        "SELECT * FROM observations_observation_text",
        "SELECT * FROM observation_visible",
        "UPDATE observations_observation SET release = 'x'",
    ):
        with pytest.raises(DatabaseError, match="permission denied"):
            with staff_session(make_staff(world.workspace, "view_traces")), connection.cursor() as cursor:
                cursor.execute(sql)
    with staff_session(make_staff(make_other(world), "view_traces")), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM observation_staff")
        assert cursor.fetchone() == (0,)
    revealer = make_staff(world.workspace, "reveal_text")
    with staff_session(revealer), act_for(world.principal.principal_id, "reveal_text"):
        texts = VisibleObservation.objects.exclude(query_text=None)
        assert [row.query_text for row in texts] == ["t"]


def make_other(world: World) -> Any:
    from tests.support.factories import make_workspace

    return make_workspace(world.superuser)


def test_the_database_itself_is_not_open_to_the_suite(owner_connection) -> None:
    """The suite's login is bound by the policies that it tests."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT rolsuper OR rolbypassrls OR pg_has_role(oid, 'memory_owner', 'MEMBER') "
            "FROM pg_roles WHERE rolname = session_user"
        )
        assert cursor.fetchone() == (False,)
    assert isinstance(owner_connection, psycopg.Connection)
