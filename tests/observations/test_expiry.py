"""Expiry: due rows go, batch after batch; the state moves in the deleting transaction; nothing is swallowed."""

import os
import tracemalloc
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, connection, transaction

from apps.core.db.sessions import maintenance_session, monitor_session, principal_session
from apps.observations import retention, status, tasks
from apps.operations import expiry, samples, watch
from apps.operations.models import Alarm, NewestSample
from tests.observations.test_database import run_as
from tests.observations.test_database import six as six
from tests.support import journal
from tests.support.factories import World, make_principal
from tests.support.journal import HOUR, count, feedback, record, seen

pytestmark = pytest.mark.django_db(transaction=True)

DAY = 24 * HOUR


@pytest.fixture(autouse=True)
def state(owner_connection):
    with journal.reset_state(owner_connection):
        yield owner_connection


@pytest.fixture
def other(world: World) -> Any:
    return make_principal(world.workspace)


def call_expire(batch: int = 5000, cutoff: str = "now()") -> tuple[int, int]:
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute(f"SELECT records, texts FROM observations_expire(%s, {cutoff})", [batch])
        return cursor.fetchone()  # type: ignore[no-any-return]


def many(owner: Any, world: World, number: int, disposition: str = "disabled") -> None:
    """Due records by the thousand."""
    me = world.principal
    owner.execute(
        "INSERT INTO observations_observation (id, workspace_id, principal_id, corpus, observed_at, "
        "record_expires_at, query_fingerprint, fingerprint_key_id, fingerprint_version, text_disposition, purpose, "
        "consent_version, snapshot) SELECT gen_random_uuid(), %s, %s, 'shared', now() - interval '3 hours', "
        "now() - interval '2 hours', repeat('0', 64), 'k', 'v', %s, 'p', 'c', '{\"hits\": []}' "
        "FROM generate_series(1, %s)",
        [me.workspace_id, me.principal_id, disposition, number],
    )


def test_due_records_and_texts_go_with_all_that_hangs_on_them(world: World, six, state) -> None:
    feedback(state, world.principal, six["at the end"])
    assert call_expire() == (3, 1)
    assert call_expire() == (0, 0)
    left = {row[0] for row in state.execute("SELECT id FROM observations_observation").fetchall()}
    assert left == {six["text gone"], six["last hour"], six["theirs"]}
    assert count(state, "observation_feedback") == 1
    assert run_as(world.principal, "SELECT observation_id FROM observations_observation_feedback") == [
        (six["last hour"],)
    ]


def test_cutoffs_in_the_future_delete_nothing_early(world: World, state) -> None:
    record(state, world.principal, text="t")
    assert call_expire(cutoff="now() + interval '1000 days'") == (0, 0)


def test_twelve_thousand_due_records_go_in_three_batches(world: World, state, monkeypatch) -> None:
    many(state, world, 12_000)
    done = expiry.drain(retention.NAME)
    assert done.counts == {"records": 12_000, "texts": 0}
    assert done.batches == 4  # the last one finds nothing
    assert done.drained
    row = state.execute(
        "SELECT processed_count, last_drained_at IS NOT NULL, consecutive_failures FROM observations_maintenance_state"
    ).fetchone()
    assert row == (12_000, True, 0)


def test_texts_of_due_records_are_left_to_these(world: World, state) -> None:
    for _ in range(40):
        record(state, world.principal, ago=3 * HOUR, hours=1, text="t")
    assert call_expire(batch=20) == (20, 2)  # no more than a tenth beside a whole batch of records
    assert call_expire(batch=20) == (20, 0)  # what was left of the texts went with their records
    assert (call_expire(batch=20), count(state, "observation_text")) == ((0, 0), 0)


def test_a_backlog_of_records_does_not_keep_texts_whose_records_live(world: World, state) -> None:
    """However many records are due before it, each batch takes the texts that are due longest."""
    many(state, world, 100)
    old = [record(state, world.principal, text="t", text_life=timedelta(minutes=1)) for _ in range(3)]
    assert call_expire(batch=20) == (20, 2)
    assert call_expire(batch=20) == (20, 1)
    assert count(state, "observation_text") == 0
    left = state.execute("SELECT count(*) FROM observations_observation WHERE id = ANY (%s)", [old])
    assert left.fetchone() == (3,)


def test_a_batch_that_records_do_not_fill_is_filled_with_texts(world: World, state) -> None:
    many(state, world, 5)
    for _ in range(30):
        record(state, world.principal, text="t", text_life=timedelta(minutes=1))
    assert call_expire(batch=20) == (5, 15)
    assert call_expire(batch=20) == (0, 15)


def test_rows_that_come_due_meanwhile_do_not_keep_a_run_going(world: World, state, monkeypatch) -> None:
    many(state, world, 50)
    real = expiry._one_batch

    def arriving(kind, found):
        assert found.batches < 20
        many(state, world, 0)
        # Due after the cut-off, each time: a drain that looked at the clock again would never end.
        record(state, world.principal, ago=HOUR, hours=1)
        return real(kind, found)

    monkeypatch.setattr(expiry, "_one_batch", arriving)
    done = expiry.drain(retention.NAME)
    assert done.drained
    assert done.counts["records"] == 50


def test_too_short_a_timeout_halves_the_batch_and_the_backlog_falls(world: World, state, monkeypatch) -> None:
    from psycopg import errors

    many(state, world, 3000)
    real = expiry._one_batch
    asked = []

    def slow(kind, found):
        asked.append(found.batch)
        if found.batch > 1250:
            raise DatabaseError from errors.QueryCanceled()
        return real(kind, found)

    monkeypatch.setattr(expiry, "_one_batch", slow)
    assert expiry.drain(retention.NAME).counts["records"] == 3000
    assert asked[:3] == [5000, 2500, 1250]
    assert count(state, "observation") == 0


def test_with_a_timeout_too_short_for_a_batch_every_run_leaves_less(world: World, state, monkeypatch) -> None:
    """Real timeouts: a whole batch takes longer than the run may, and its timeout is as long as the run."""
    many(state, world, 4000)
    state.execute(
        "CREATE FUNCTION tests_slow() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_sleep(0.003); RETURN OLD; END $$; "
        "CREATE TRIGGER tests_slow BEFORE DELETE ON observations_observation "
        "FOR EACH ROW EXECUTE FUNCTION tests_slow()"
    )
    (kind,) = (each for each in expiry.registered() if each.name == retention.NAME)
    hasty = replace(kind, statement_timeout=timedelta(seconds=8), budget=timedelta(seconds=8))
    monkeypatch.setitem(expiry._registered, retention.NAME, hasty)
    try:
        run = expiry.drain(retention.NAME)
    finally:
        state.execute("DROP TRIGGER tests_slow ON observations_observation; DROP FUNCTION tests_slow")
    assert not run.drained
    assert run.batch < kind.batch
    assert 0 < run.counts["records"] == 4000 - count(state, "observation")
    assert "failing" not in status.read().reasons


def test_memory_stays_flat_however_much_is_due(world: World, state) -> None:
    """Rows stay in the database: what the process holds does not grow with them."""
    peaks = []
    for number in (10, 10, 10_000):  # the first makes what a process makes once
        many(state, world, number)
        tracemalloc.start()
        assert expiry.drain(retention.NAME).counts["records"] == number
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < peaks[1] + 256 * 1024


def test_total_failure_is_counted_raised_and_alarmed(world: World, state) -> None:
    many(state, world, 10)
    state.execute(
        "CREATE FUNCTION tests_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$; "
        "CREATE TRIGGER tests_refuse BEFORE DELETE ON observations_observation "
        "FOR EACH ROW EXECUTE FUNCTION tests_refuse()"
    )
    try:
        for failures in (1, 2):
            with pytest.raises(expiry.ExpiryFailed):
                tasks.expire.function()
            row = state.execute(
                "SELECT consecutive_failures, last_success_at, last_failure_code FROM observations_maintenance_state"
            ).fetchone()
            assert row == (failures, None, "sqlstate_P0001")
    finally:
        state.execute("DROP TRIGGER tests_refuse ON observations_observation; DROP FUNCTION tests_refuse")
    assert "failing" in status.read().reasons
    watch.check_expiry()
    assert Alarm.objects.filter(source="expiry:observations", reason="failing", resolved_at=None).exists()


def test_a_locked_row_keeps_the_alarm_on_until_it_is_gone(world: World, state) -> None:
    key = record(state, world.principal, ago=3 * HOUR, hours=1)
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"]) as holder:
        holder.execute("SELECT FROM observations_observation WHERE id = %s FOR UPDATE", [key])
        assert expiry.drain(retention.NAME).counts["records"] == 0
        found = status.read()
        assert found.values["last_success_at"] is not None
        assert (found.reasons, found.values["expired_records"]) == (("expired_records",), 1)
        holder.rollback()
    assert expiry.drain(retention.NAME).counts["records"] == 1
    assert not status.read().alarm


@pytest.mark.parametrize("switch", ["off", "killed"])
def test_expiry_goes_on_when_nothing_is_collected(on: World, state, settings, switch) -> None:
    record(state, on.principal, ago=3 * HOUR, hours=1)
    settings.OBSERVATION_KILL_SWITCH = switch == "killed"
    settings.OBSERVATION_MODE_CEILING = "off"
    journal.set_policy(state, on.workspace.pk, mode="off")
    assert seen(on.principal, "observations_observation") == 0
    assert tasks.expire.function() == {"records": 1, "texts": 0}
    assert count(state, "observation") == 0


def test_shortening_lowers_deadlines_and_raises_none(world: World, state) -> None:
    old = record(state, world.principal, ago=31 * DAY, text="t")
    young = record(state, world.principal, ago=DAY, text="t")
    short = record(state, world.principal, ago=HOUR, hours=48, text="t")
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute("SELECT records, texts FROM observations_shorten(%s, 720, 1000)", [world.workspace.pk])
        assert cursor.fetchone() == (2, 2)
        cursor.execute(
            "SELECT records, texts FROM observations_shorten(%s, 2000, 1000)", [world.workspace.pk]
        )
        assert cursor.fetchone() == (0, 0)
    found = dict(
        state.execute(
            "SELECT o.id, extract(epoch FROM o.record_expires_at - o.observed_at)::int / 3600 "
            "FROM observations_observation o"
        ).fetchall()
    )
    assert found == {old: 720, young: 720, short: 48}
    assert {row[0] for row in run_as(world.principal, "SELECT id FROM observation_visible")} == {young, short}
    for hours in (0, -1, 2161):
        with pytest.raises(DatabaseError), maintenance_session(), connection.cursor() as cursor:
            cursor.execute("SELECT observations_shorten(%s, %s, 10)", [world.workspace.pk, hours])


# Status.


def move_success(owner: Any, by: str) -> None:
    owner.execute(
        "UPDATE observations_maintenance_state SET last_success_at = clock_timestamp() + %s::interval", [by]
    )


def test_status_that_never_succeeded_is_an_alarm_and_a_success_clears_it(world: World, state) -> None:
    assert status.read().reasons == ("never_succeeded",)
    call_expire()
    assert status.read().reasons == ()


@pytest.mark.parametrize(
    ("by", "reasons"),
    [
        ("-29 minutes", ()),
        ("-31 minutes", ("success_stale",)),
        ("2 minutes", ("success_in_future",)),
        ("30 seconds", ()),
    ],
)
def test_heartbeats_too_old_or_ahead_are_an_alarm(world: World, state, by, reasons) -> None:
    move_success(state, by)
    found = status.read()
    assert found.reasons == reasons
    if by == "-31 minutes":
        assert found.values["seconds_since_success"] >= 1860


def test_a_rolled_back_run_moves_no_heartbeat(world: World, state) -> None:
    move_success(state, "-31 minutes")
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute("SELECT observations_expire(100, now())")
        transaction.set_rollback(True)
    found = status.read()
    assert found.reasons == ("success_stale",)
    assert found.values["seconds_since_success"] >= 1860


def test_hidden_rows_do_not_hide_from_status(world: World, state) -> None:
    record(state, world.principal, ago=2 * HOUR, hours=1)
    record(state, world.principal, ago=2 * HOUR, text="t", text_life=timedelta(minutes=30))
    assert seen(world.principal, "observations_observation") == 1
    call = status.read().values
    assert (call["expired_records"], call["expired_texts"]) == (1, 1)
    assert call["oldest_overdue_seconds"] >= 3600


def walks() -> dict[str, int]:
    """How often each index of records and texts was walked so far, and each of the tables as a whole."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexrelname, idx_scan FROM pg_stat_user_indexes WHERE relname = ANY (%(tables)s) "
            "UNION ALL SELECT relname, seq_scan FROM pg_stat_user_tables WHERE relname = ANY (%(tables)s)",
            {"tables": ["observations_observation", "observations_observation_text"]},
        )
        return dict(cursor.fetchall())


def test_right_after_a_drain_status_walks_what_the_drain_has_walked_and_nothing_else(
    world: World, state
) -> None:
    """What was deleted is still in every index. The drain has marked it in its own two; a count by another looks up
    each row that is gone."""
    many(state, world, 5000, "retained")
    state.execute(
        "INSERT INTO observations_observation_text (observation_id, workspace_id, principal_id, observed_at, "
        "text_disposition, query_text, text_expires_at) SELECT id, workspace_id, principal_id, observed_at, "
        "text_disposition, 't', record_expires_at FROM observations_observation"
    )
    state.execute("ANALYZE observations_observation, observations_observation_text")
    assert expiry.drain(retention.NAME).counts["records"] == 5000
    before = walks()
    assert status.read().values["expired_records"] == 0
    walked = {name: count - before[name] for name, count in walks().items() if count != before[name]}
    assert walked == {"observations_expiry": 1, "observations_text_expiry": 1}


def test_another_database_is_an_alarm(world: World, state) -> None:
    call_expire()
    state.execute("UPDATE observations_maintenance_state SET database_oid = database_oid + 1")
    try:
        assert status.read().reasons == ("identity_changed",)
    finally:
        state.execute("UPDATE observations_maintenance_state SET database_oid = database_oid - 1")


def denied(session: Any, sql: str) -> None:
    with pytest.raises(DatabaseError, match="permission denied"), session, connection.cursor() as cursor:
        cursor.execute(sql)


def test_monitors_read_no_table_and_principals_no_status(world: World) -> None:
    for table in ("observation", "observation_text", "maintenance_state", "enrolment"):
        denied(monitor_session(), f"SELECT * FROM observations_{table}")
    denied(monitor_session(), "SELECT observations_expire(1, now())")
    denied(maintenance_session(), "SELECT observations_status()")
    denied(principal_session(world.principal), "SELECT observations_status()")
    denied(principal_session(world.principal), "SELECT observations_expire(1, now())")
    denied(
        principal_session(world.principal), "UPDATE observations_maintenance_state SET processed_count = 0"
    )


def test_functions_of_other_apps_are_merged(world: World, state) -> None:
    state.execute(
        "CREATE FUNCTION tests_pool_status() RETURNS TABLE (expired_pool bigint, oldest_overdue_seconds float8, "
        "alarm_reasons text[]) LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp "
        "AS $$ SELECT 2::bigint, 1500::float8, '{}'::text[] $$; "
        "REVOKE ALL ON FUNCTION tests_pool_status FROM PUBLIC; "
        "GRANT EXECUTE ON FUNCTION tests_pool_status TO memory_monitor"
    )
    status.register("tests_pool_status")
    try:
        call_expire()
        found = status.read()
        assert found.reasons == ("expired_pool",)
        assert found.document()["expired_pool"] == 2
        assert found.exit_code() == status.ALARM  # older than the next run explains
    finally:
        status.unregister("tests_pool_status")
        state.execute("DROP FUNCTION tests_pool_status")


def test_gauges_are_sampled_with_their_time(world: World, state) -> None:
    call_expire()
    tasks.status_sample.function()
    found = {sample.name: sample for sample in NewestSample.objects.filter(name__startswith="observation_")}
    assert found["observation_expired_records"].value == 0
    assert found["observation_alarm"].value == 0
    assert found["observation_seconds_since_success"].at is not None
    assert {sample.name for sample in samples.newest()} >= found.keys()


def test_the_dead_mans_switch_is_rung_after_a_clean_run_alone(
    world: World, state, settings, monkeypatch
) -> None:
    called = []
    monkeypatch.setattr(tasks.outbound, "request", lambda *args, **more: called.append(args))
    tasks.expire.function()
    assert called == []  # no address
    settings.OBSERVATION_DEADMAN_URL = "https://alive.example/ping"
    tasks.expire.function()
    assert called == [("GET", "https://alive.example/ping")]
    with monkeypatch.context() as patch:
        patch.setattr(status, "read", lambda: status.Reading({"alarm_reasons": ["success_stale"]}))
        tasks.expire.function()
    assert len(called) == 1


# Roles, looked at every day.


def test_the_daily_look_at_roles_alarms_on_a_difference_and_closes_when_it_is_gone(
    world: World, state, admin_connection
) -> None:
    open_alarm = Alarm.objects.filter(
        source="observations.verify_roles", reason="roles_differ", resolved_at=None
    )
    assert tasks.verify_roles.function() == {"differences": 0, "loosening": 0}
    assert not open_alarm.exists()
    admin_connection.execute("GRANT TRUNCATE ON observations_observation TO memory_api")
    admin_connection.execute("REVOKE EXECUTE ON FUNCTION observations_shorten FROM memory_maintenance")
    try:
        assert tasks.verify_roles.function() == {"differences": 2, "loosening": 1}
        assert open_alarm.get().details == {"differences": 2, "loosening": 1}
    finally:
        admin_connection.execute("REVOKE TRUNCATE ON observations_observation FROM memory_api")
        admin_connection.execute("GRANT EXECUTE ON FUNCTION observations_shorten TO memory_maintenance")
    tasks.verify_roles.function()
    assert not open_alarm.exists()


def test_the_look_at_roles_is_scheduled_once_a_day_and_missed_when_it_is_not_run() -> None:
    declared = tasks.verify_roles.declaration
    assert declared.schedule is not None
    assert declared.schedule.interval == DAY
    assert declared.freshness == 2 * DAY
    assert declared.misfire == "run_once"


def test_it_is_not_rung_after_a_run_that_left_due_rows_or_failed(
    world: World, state, settings, monkeypatch
) -> None:
    called = []
    monkeypatch.setattr(tasks.outbound, "request", lambda *args, **more: called.append(args))
    settings.OBSERVATION_DEADMAN_URL = "https://alive.example/ping"
    many(state, world, 10)
    out_of_time = replace(expiry._registered[retention.NAME], budget=timedelta(0), batch=5)
    with monkeypatch.context() as patch:
        patch.setitem(expiry._registered, retention.NAME, out_of_time)
        tasks.expire.function()
    assert count(state, "observation") == 5
    assert called == []

    def fail(*args: Any) -> Any:
        raise expiry.ExpiryFailed("sqlstate_XX000")

    with monkeypatch.context() as patch:
        patch.setattr(expiry, "_one_batch", fail)
        with pytest.raises(expiry.ExpiryFailed):
            tasks.expire.function()
    assert called == []
    tasks.expire.function()
    assert called == [("GET", "https://alive.example/ping")]


def test_a_service_that_does_not_answer_fails_no_run(world: World, state, settings, monkeypatch) -> None:
    def fail(*args: Any, **more: Any) -> Any:
        raise tasks.outbound.OutboundFailed("timeout")

    monkeypatch.setattr(tasks.outbound, "request", fail)
    settings.OBSERVATION_DEADMAN_URL = "https://alive.example/ping"
    assert tasks.expire.function() == {"records": 0, "texts": 0}
