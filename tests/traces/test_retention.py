"""A trace is gone at its time for everyone, and from the tables once the task has run."""

from datetime import timedelta

import pytest
from django.db import connection

from apps.core import clock
from apps.core.db.sessions import maintenance_session, principal_session, staff_session
from apps.core.problems import Problem
from apps.feedback.models import Credit, EdgeStrength
from apps.operations import expiry, holds
from apps.traces import retention
from apps.traces.models import ActionReceipt, Trace
from apps.traces.services.erase import erase_trace
from tests.feedback.test_outcomes import confirm
from tests.support.factories import make_principal, make_staff, make_world
from tests.support.traces import climb, graph_row, page, ranked, save, source_of, walk

pytestmark = pytest.mark.django_db

TABLES = (
    "traces_trace",
    "traces_source",
    "traces_path_edge",
    "traces_use",
    "traces_action_receipt",
    "core_idempotencykey",
    "feedback_credit",
)


@pytest.fixture
def world():
    return make_world()


def confirmed(at):
    with clock.frozen(at):
        saved = save([ranked(page("a")), graph_row(page("c"), [walk("a", "b", "c")])])
        climb(saved.id, source_of(page("c")))
        receipt = confirm(saved.id, source_of(page("c")))
    return saved.id, receipt["receipt_id"]


@pytest.fixture
def pass_time(owner_connection):
    """Moves the end of traces to this moment."""

    def move(*traces):
        owner_connection.execute(
            "UPDATE traces_trace SET expires_at = now() WHERE id = ANY (%s)", [list(traces)]
        )

    return move


def expire(batch=1000):
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute("SELECT traces, failed FROM traces_expire(%s, now())", [batch])
        return cursor.fetchone()


def ledger_drift():
    from apps.feedback.tasks import verify

    return verify(20000)[1]


@pytest.mark.django_db(transaction=True)
def test_at_its_time_a_trace_is_invisible_before_any_task_has_run(world, pass_time) -> None:
    with principal_session(world.principal):
        trace, _ = confirmed(clock.now())
        assert Trace.objects.exists()
    pass_time(trace)
    with principal_session(world.principal):
        assert not Trace.objects.exists()
        assert not ActionReceipt.objects.exists()
        with pytest.raises(Problem) as refused:
            climb(trace, source_of(page("a")), "selected")
        assert refused.value.shown_code == "unknown_trace"
    reader = make_staff(world.workspace, "view_traces", "review_retention")
    with staff_session(reader):
        assert not Trace.objects.defer("query").exists()


@pytest.mark.django_db(transaction=True)
def test_expiry_deletes_all_that_hangs_on_a_trace_and_nothing_of_others(
    world, admin_connection, pass_time
) -> None:
    other = make_principal(world.workspace)
    now = clock.now()
    with principal_session(world.principal):
        old, _ = confirmed(now)
        kept, _ = confirmed(now - timedelta(minutes=1))
    with principal_session(other):
        confirmed(now)
    pass_time(old)
    drained = expiry.drain(retention.TRACES)
    assert drained.counts["traces"] == 1
    for table in TABLES:
        rows = admin_connection.execute(
            f"SELECT count(*), count(DISTINCT principal_id) FROM {table}"
        ).fetchone()
        assert rows[1] == 2, table
    with principal_session(world.principal):
        assert list(Trace.objects.values_list("id", flat=True)) == [kept]
    assert expiry.drain(retention.TRACES).counts["traces"] == 0


@pytest.mark.django_db(transaction=True)
def test_expiry_takes_back_what_its_traces_lent(world, pass_time) -> None:
    now = clock.now()
    with principal_session(world.principal):
        old, _ = confirmed(now - timedelta(minutes=50))
        confirmed(now - timedelta(minutes=30))
        confirmed(now - timedelta(minutes=1))
    pass_time(old)
    assert ledger_drift() < 1e-9
    assert expire()[0] == 1
    assert ledger_drift() < 1e-9
    with principal_session(world.principal):
        assert Credit.objects.count() == 4
        assert set(EdgeStrength.objects.values_list("strength", flat=True)) != {0.0}


def test_under_a_hold_nothing_is_deleted_and_only_reviewers_see_it(world) -> None:
    now = clock.now()
    with principal_session(world.principal):
        held, _ = confirmed(now - timedelta(minutes=1))
        kept, _ = confirmed(now - timedelta(minutes=2))
    reviewer = make_staff(world.workspace, "view_traces", "review_retention")
    with staff_session(reviewer):
        holds.place(
            workspace_id=world.workspace.pk, reference="case", reason="asked", items=[("traces.trace", held)]
        )
    with principal_session(world.principal):
        with pytest.raises(Problem) as refused:
            erase_trace(trace_id=held)
        assert refused.value.shown_code == "legal_hold"
        erase_trace(trace_id=kept)
        assert list(Trace.objects.values_list("id", flat=True)) == [held]


@pytest.mark.django_db(transaction=True)
def test_a_held_trace_past_its_time_is_seen_by_reviewers_alone(world, pass_time) -> None:
    with principal_session(world.principal):
        trace, _ = confirmed(clock.now())
    pass_time(trace)
    reviewer = make_staff(world.workspace, "view_traces", "review_retention")
    reader = make_staff(world.workspace, "view_traces")
    with staff_session(reviewer):
        holds.place(
            workspace_id=world.workspace.pk,
            reference="case",
            reason="asked",
            items=[("traces.principal", world.principal.principal_id)],
        )
    assert expire() == (0, 0)
    with principal_session(world.principal):
        assert not Trace.objects.exists()
    with staff_session(reader):
        assert not Trace.objects.defer("query").exists()
    with staff_session(reviewer):
        assert Trace.objects.defer("query").count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_batch_that_fails_leaves_the_others_committed(world, owner_connection, pass_time) -> None:
    other, expired = make_principal(world.workspace), []
    now = clock.now()
    for principal in (world.principal, other):
        with principal_session(principal):
            expired.append(confirmed(now)[0])
    pass_time(*expired)
    owner_connection.execute(
        f"""
        CREATE FUNCTION refuse_deletion() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
          IF OLD.principal_id = '{world.principal.principal_id}' THEN RAISE EXCEPTION 'no'; END IF;
          RETURN OLD; END $$;
        CREATE TRIGGER refuse BEFORE DELETE ON traces_trace FOR EACH ROW EXECUTE FUNCTION refuse_deletion()
        """
    )
    try:
        with pytest.raises(expiry.ExpiryFailed):
            expiry.drain(retention.TRACES)
    finally:
        owner_connection.execute("DROP TRIGGER refuse ON traces_trace; DROP FUNCTION refuse_deletion()")
    with owner_connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT principal_id FROM traces_trace")
        assert cursor.fetchall() == [(world.principal.principal_id,)]
    assert expiry.drain(retention.TRACES).counts["traces"] == 1


def test_a_text_is_erased_and_the_rest_stays_as_it_was(world) -> None:
    from apps.feedback.selectors import trace_detail

    now = clock.now()
    with principal_session(world.principal):
        trace, _receipt = confirmed(now - timedelta(days=31))
        before = trace_detail(trace, limit=10, cursor=None)
        replayed_before = confirm(trace, source_of(page("c")))
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute("SELECT queries, reasons FROM traces_erase_text(1000, now())")
        assert cursor.fetchone() == (1, 1)
        cursor.execute("SELECT queries, reasons FROM traces_erase_text(1000, now())")
        assert cursor.fetchone() == (0, 0)
    with principal_session(world.principal):
        after = trace_detail(trace, limit=10, cursor=None)
        assert after["query"] is None
        assert Trace.objects.get().query_erased_at is not None
        replayed = confirm(trace, source_of(page("c")))
        assert replayed["reason"] is None
        assert replayed == replayed_before | {"reason": None}
    before["query"] = None
    before["audit"][-1]["reason"] = None
    for moment in (before, after):
        for source in moment["sources"]:
            source["activation"].pop("as_of")
            for channel in ("retrieved", "usage", "total"):
                source["activation"].pop(channel)
    assert after == before


def test_activation_of_next_to_nothing_goes_once_nobody_touched_it(world) -> None:
    from apps.traces.models import Activation

    now = clock.now()
    with principal_session(world.principal):
        with clock.frozen(now - timedelta(days=31)):
            save([ranked(page("a"))])
        with clock.frozen(now - timedelta(days=29)):
            save([ranked(page("b"))])
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute("SELECT traces_prune_activation(1000, now())")
        assert cursor.fetchone() == (1,)
    with principal_session(world.principal):
        assert list(Activation.objects.values_list("source_id", flat=True)) == [source_of(page("b"))]


def test_strength_goes_only_without_a_credit(world) -> None:
    now = clock.now()
    with principal_session(world.principal):
        confirmed(now - timedelta(days=5))
    prune = "SELECT feedback_prune_strength(1000, clock_timestamp())"
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute(prune)
        assert cursor.fetchone() == (0,)
    with principal_session(world.principal):
        erase_trace(trace_id=Trace.objects.get().id)
        assert set(EdgeStrength.objects.values_list("strength", flat=True)) == {0.0}
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute(prune)
        assert cursor.fetchone() == (2,)


def test_a_key_of_an_erased_trace_is_free(world) -> None:
    with principal_session(world.principal):
        trace, _ = confirmed(clock.now())
        erase_trace(trace_id=trace)
        saved = save([ranked(page("a"))])
        with pytest.raises(Problem) as refused:
            confirm(trace, source_of(page("c")))
        assert refused.value.shown_code == "unknown_trace"
        climb(saved.id, source_of(page("a")), "selected", key=f"c{trace}")
