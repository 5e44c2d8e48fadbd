"""Draining: one cut-off, committed batches, a smaller one after a timeout, never a swallowed failure."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection

from apps.core.db.sessions import maintenance_session, monitor_session, principal_session
from apps.operations import expiry, watch
from apps.operations.expiry import Expiry, ExpiryFailed
from apps.operations.models import Alarm, NewestSample
from tests.support.factories import make_world

pytestmark = pytest.mark.django_db(transaction=True)

SET_UP = """
  CREATE TABLE tests_due (id bigserial PRIMARY KEY, due timestamptz NOT NULL, poison boolean DEFAULT false);
  CREATE TABLE tests_batches (n bigserial, batch int, deleted int, cutoff timestamptz);
  CREATE TABLE tests_pace AS SELECT 0::float8 AS seconds_a_row;
  CREATE FUNCTION tests_expire(batch int, cutoff timestamptz)
  RETURNS TABLE (records bigint, failed bigint) LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
  DECLARE gone bigint;
  BEGIN
    PERFORM pg_sleep(batch * (SELECT max(seconds_a_row) FROM public.tests_pace));
    IF EXISTS (SELECT FROM public.tests_due d WHERE d.poison) THEN
      RAISE EXCEPTION 'a row that says too much';
    END IF;
    WITH due AS (
      SELECT d.id FROM public.tests_due d WHERE d.due <= least(cutoff, statement_timestamp())
      ORDER BY d.due LIMIT batch FOR UPDATE SKIP LOCKED
    ), deleted AS (DELETE FROM public.tests_due d USING due WHERE d.id = due.id RETURNING 1)
    SELECT count(*) INTO gone FROM deleted;
    INSERT INTO public.tests_batches (batch, deleted, cutoff) VALUES (batch, gone, cutoff);
    RETURN QUERY SELECT gone, 0::bigint;
  END $$;
  CREATE FUNCTION tests_status() RETURNS TABLE (expired_records bigint, oldest_overdue_seconds float8)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT count(*), coalesce(max(extract(epoch FROM statement_timestamp() - d.due)), 0)::float8
    FROM public.tests_due d WHERE d.due <= statement_timestamp()
  $$;
  REVOKE ALL ON FUNCTION tests_expire, tests_status FROM PUBLIC;
  GRANT EXECUTE ON FUNCTION tests_expire TO memory_maintenance;
  GRANT EXECUTE ON FUNCTION tests_status TO memory_monitor;
"""
TEAR_DOWN = """
  DROP FUNCTION tests_expire; DROP FUNCTION tests_status; DROP TABLE tests_due, tests_batches, tests_pace;
  DROP FUNCTION IF EXISTS tests_arrive;
"""
INTERVAL = timedelta(minutes=15)


@pytest.fixture
def database(owner_connection):
    """A table with due rows of a test kind, as an app would bring one."""
    owner_connection.execute(SET_UP)
    expiry.register(Expiry("tests", interval=INTERVAL, batch=5000))
    yield owner_connection
    expiry.unregister("tests")
    owner_connection.execute(TEAR_DOWN)


def add_due(database, count: int, ago: str = "1 hour") -> None:
    database.execute(
        "INSERT INTO tests_due (due) SELECT now() - %s::interval FROM generate_series(1, %s)", [ago, count]
    )


def left(database) -> int:
    return database.execute("SELECT count(*) FROM tests_due").fetchone()[0]  # type: ignore[no-any-return]


def batches(database) -> Any:
    return database.execute("SELECT batch, deleted FROM tests_batches ORDER BY n").fetchall()


def state(database, column: str):
    row = database.execute(f"SELECT {column} FROM operations_expirystate WHERE name = 'tests'").fetchone()
    return row[0] if row else None


def test_a_backlog_goes_in_committed_batches_until_one_is_empty(database) -> None:
    add_due(database, 12_000)
    add_due(database, 5, ago="-1 hour")
    done = expiry.drain("tests")
    assert [deleted for _, deleted in batches(database)] == [5000, 5000, 2000, 0]
    assert (done.counts, done.batches, done.drained) == ({"records": 12_000, "failed": 0}, 4, True)
    assert left(database) == 5
    assert state(database, "processed_count") == 12_000
    assert state(database, "last_drained_at") is not None


def test_the_cut_off_is_fixed_so_that_it_ends_under_steady_arrivals(database) -> None:
    database.execute("""
      CREATE FUNCTION tests_arrive() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
      SET search_path = pg_catalog, pg_temp AS $$
      BEGIN INSERT INTO public.tests_due (due) VALUES (clock_timestamp()); RETURN NULL; END $$;
      CREATE TRIGGER arrive AFTER DELETE ON tests_due FOR EACH ROW EXECUTE FUNCTION tests_arrive();
    """)
    add_due(database, 300)
    expiry.register(Expiry("tests", interval=INTERVAL, batch=100))
    done = expiry.drain("tests")
    assert done.counts["records"] == 300
    assert left(database) == 300
    assert database.execute("SELECT count(DISTINCT cutoff) FROM tests_batches").fetchone()[0] == 1


def slow(database, seconds_a_row: float) -> None:
    database.execute("UPDATE tests_pace SET seconds_a_row = %s", [seconds_a_row])


def test_a_timeout_halves_the_batch_and_the_backlog_still_falls(database) -> None:
    add_due(database, 700)
    slow(database, 0.0005)
    expiry.register(
        Expiry("tests", interval=INTERVAL, batch=800, statement_timeout=timedelta(milliseconds=250))
    )
    done = expiry.drain("tests")
    assert done.drained
    assert done.counts["records"] == 700
    assert done.batch < 800
    assert {batch for batch, _ in batches(database)} == {done.batch}
    assert left(database) == 0


def test_below_the_least_batch_a_timeout_is_a_failure_that_is_counted_and_raised(database) -> None:
    add_due(database, 100)
    slow(database, 0.01)
    expiry.register(
        Expiry("tests", interval=INTERVAL, batch=200, statement_timeout=timedelta(milliseconds=30))
    )
    for failures in (1, 2):
        with pytest.raises(ExpiryFailed, match="sqlstate_57014"):
            expiry.drain("tests")
        assert state(database, "consecutive_failures") == failures
    assert state(database, "last_success_at") is None
    assert "failing" in expiry.status("tests").reasons


def test_the_budget_ends_a_run_and_the_next_goes_on(database) -> None:
    add_due(database, 150)
    expiry.register(Expiry("tests", interval=INTERVAL, batch=100, budget=timedelta(0)))
    first = expiry.drain("tests")
    assert (first.counts["records"], first.drained, left(database)) == (100, False, 50)
    assert state(database, "last_success_at") is not None
    assert state(database, "last_drained_at") is None
    expiry.drain("tests")
    assert left(database) == 0


def test_a_failing_batch_leaves_what_was_committed_and_no_success_of_its_own(database) -> None:
    add_due(database, 10)
    expiry.drain("tests")
    before = state(database, "last_success_at")
    add_due(database, 10)
    database.execute("INSERT INTO tests_due (due, poison) VALUES (now(), true)")
    with pytest.raises(ExpiryFailed) as raised:
        expiry.drain("tests")
    assert raised.value.code == "sqlstate_P0001"
    assert "says too much" not in str(raised.value)
    assert state(database, "last_success_at") == before
    assert state(database, "last_failure_code") == "sqlstate_P0001"
    database.execute("DELETE FROM tests_due WHERE poison")
    expiry.drain("tests")
    assert state(database, "consecutive_failures") == 0


ASKS_ABOUT_HOLDS = """
  CREATE OR REPLACE FUNCTION tests_expire(batch int, cutoff timestamptz)
  RETURNS TABLE (records bigint, failed bigint) LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp AS $$
  BEGIN
    PERFORM public.operations_hold_lock(ARRAY['tests.thing']);
    IF public.operations_held(ARRAY['tests.thing'], ARRAY[gen_random_uuid()]) THEN RAISE 'held'; END IF;
    DELETE FROM public.tests_due;
    RETURN QUERY SELECT 0::bigint, 0::bigint;
  END $$
"""


@pytest.mark.parametrize("why", ["no table", "no function", "no lock"])
def test_what_cannot_ask_about_holds_in_sql_deletes_nothing_and_says_that(database, why: str) -> None:
    add_due(database, 1)
    database.execute(ASKS_ABOUT_HOLDS)
    hasty = timedelta(milliseconds=100)
    expiry.register(Expiry("tests", interval=INTERVAL, lock_timeout=hasty))
    mend = {
        "no table": "ALTER TABLE operations_holditem_away RENAME TO operations_holditem",
        "no function": "ALTER FUNCTION operations_held_away(text[], uuid[]) RENAME TO operations_held",
        "no lock": "SELECT pg_advisory_unlock(1752132708, hashtext('tests.thing'))",
    }[why]
    database.execute(
        {
            "no table": "ALTER TABLE operations_holditem RENAME TO operations_holditem_away",
            "no function": "ALTER FUNCTION operations_held(text[], uuid[]) RENAME TO operations_held_away",
            "no lock": "SELECT pg_advisory_lock(1752132708, hashtext('tests.thing'))",
        }[why]
    )
    try:
        with pytest.raises(ExpiryFailed, match=r"^hold_check_failed$"):
            expiry.drain("tests")
    finally:
        database.execute(mend)
    assert (left(database), state(database, "last_failure_code")) == (1, "hold_check_failed")
    expiry.drain("tests")
    assert left(database) == 0


def test_batches_that_could_not_be_deleted_are_no_progress_and_a_failure(database) -> None:
    database.execute("""
      CREATE OR REPLACE FUNCTION tests_expire(batch int, cutoff timestamptz)
      RETURNS TABLE (records bigint, failed bigint) LANGUAGE sql SECURITY DEFINER
      SET search_path = pg_catalog, pg_temp AS $$ SELECT 0::bigint, 2::bigint $$
    """)
    with pytest.raises(ExpiryFailed, match="batch_failed"):
        expiry.drain("tests")
    assert state(database, "consecutive_failures") == 1


def test_a_row_locked_elsewhere_stays_and_keeps_the_reason(database, admin_connection) -> None:
    add_due(database, 1)
    with admin_connection.transaction():
        admin_connection.execute("SELECT FROM tests_due FOR UPDATE")
        done = expiry.drain("tests")
        assert done.counts["records"] == 0
        assert state(database, "last_success_at") is not None
        found = expiry.status("tests")
        assert found.reasons == ("expired_records",)
        assert found.values["expired_records"] == 1
    assert expiry.drain("tests").counts["records"] == 1
    assert expiry.status("tests").reasons == ()


def test_status_tells_never_stale_future_and_young(database) -> None:
    assert expiry.status("tests").reasons == ("never_succeeded",)
    assert expiry.status("tests").urgent() == ()
    expiry.drain("tests")
    assert expiry.status("tests").reasons == ()
    for shift, reasons in (
        ("interval '-30 minutes'", ("success_stale",)),
        ("interval '-29 minutes'", ()),
        ("interval '2 minutes'", ("success_in_future",)),
        ("interval '30 seconds'", ()),
    ):
        database.execute(
            f"UPDATE operations_expirystate SET last_success_at = now() + {shift} WHERE name = 'tests'"
        )
        assert expiry.status("tests").reasons == reasons
    add_due(database, 2, ago="10 minutes")
    assert expiry.status("tests").reasons == ("expired_records",)
    assert expiry.status("tests").urgent() == ()
    add_due(database, 1, ago="1 hour")
    assert expiry.status("tests").urgent() == ("expired_records",)


def test_the_watch_alarms_samples_and_clears(database) -> None:
    add_due(database, 3, ago="1 hour")
    watch.check_expiry()
    alarm = Alarm.objects.get(source="expiry:tests")
    assert (alarm.reason, alarm.details["expired_records"]) == ("expired_records", 3)
    sample = NewestSample.objects.get(name="expiry_overdue_rows", labels__kind="tests")
    assert sample.value == 3
    expiry.drain("tests")
    watch.check_expiry()
    alarm.refresh_from_db()
    assert alarm.resolved_at is not None
    sample.refresh_from_db()
    assert sample.value == 0


def test_a_status_that_cannot_be_read_is_an_alarm(database) -> None:
    database.execute("REVOKE ALL ON FUNCTION tests_status FROM memory_monitor")
    watch.check_expiry()
    assert Alarm.objects.get(source="expiry:tests").reason == "status_unknown"


def test_only_maintenance_drains_and_only_the_monitor_reads(database) -> None:
    world = make_world()
    for session, call in (
        (monitor_session, "SELECT tests_expire(1, now())"),
        (monitor_session, "SELECT operations_expiry_moved('tests', 1, true)"),
        (maintenance_session, "SELECT tests_status()"),
        (maintenance_session, "SELECT operations_expiry_state('tests')"),
        (lambda: principal_session(world.principal), "SELECT operations_expiry_state('tests')"),
        (lambda: principal_session(world.principal), "SELECT operations_prune_alarms(1, now())"),
        (maintenance_session, "SELECT 1 FROM operations_expirystate"),
    ):
        with (
            pytest.raises(DatabaseError, match="permission denied"),
            session(),
            connection.cursor() as cursor,
        ):
            cursor.execute(call)
