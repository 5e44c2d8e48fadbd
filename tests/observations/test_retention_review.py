"""Retention reviews: due, decided with frozen inputs, shortened by two persons; nothing ever lives longer."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection

from apps.core import clock
from apps.core.db.sessions import maintenance_session, principal_session, staff_session
from apps.core.problems import Forbidden, InvalidRequest
from apps.observations.models.exports import Location
from apps.observations.policy import KIND
from apps.observations.services import erasure
from apps.observations.services import reviews as journal_reviews
from apps.observations.services.enrolments import enrol
from apps.observations.services.exports import export
from apps.observations.services.reviews import SUBJECT, start_of
from apps.operations import alarms, reviews, tasks
from apps.operations.models import Alarm, RetentionReview
from apps.operations.models.reviews import Decision
from tests.support import journal
from tests.support.factories import World, make_principal, make_staff, make_world
from tests.support.journal import HOUR, feedback, record, seen
from tests.support.library import CHAIN, store, wiki

pytestmark = pytest.mark.django_db(transaction=True)

DAY = 24 * HOUR
WHY = "what is kept is still used"


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks.carry_out_reviews, "delay", lambda: None)


@pytest.fixture
def reviewer(on: World) -> Any:
    return make_staff(on.workspace, "review_retention")


@pytest.fixture
def other(on: World) -> Any:
    return make_staff(on.workspace, "review_retention")


def decide(world: World, staff: Any, decision: Decision = Decision.KEEP, **more: Any) -> RetentionReview:
    given = {"next_due_at": clock.now() + 30 * DAY, "reason": WHY} | more
    with staff_session(staff):
        return reviews.decide(subject=SUBJECT, workspace_id=world.workspace.pk, decision=decision, **given)


def began(owner: Any, world: World, at: datetime) -> None:
    """As if the mode had been switched on then."""
    owner.execute("ALTER TABLE core_storedpolicy DISABLE TRIGGER USER")
    owner.execute(
        "UPDATE core_storedpolicy SET effective_from = %s WHERE workspace_id = %s AND kind = %s",
        [at, world.workspace.pk, KIND],
    )
    owner.execute("ALTER TABLE core_storedpolicy ENABLE TRIGGER USER")


def limits_of(owner: Any, world: World) -> tuple[Any, Any]:
    document = owner.execute(
        "SELECT document FROM core_storedpolicy WHERE workspace_id = %s AND kind = %s ORDER BY version DESC LIMIT 1",
        [world.workspace.pk, KIND],
    ).fetchone()[0]
    return document["text_days"], document["record_hours"]


def test_the_first_is_due_720_hours_after_the_workspace_began(on: World, owner_connection, reviewer) -> None:
    began(owner_connection, on, datetime(2026, 3, 1, 12, tzinfo=UTC))
    with staff_session(reviewer):
        due = reviews.due_at(SUBJECT, on.workspace.pk, start_of(on.workspace.pk))
    assert due == datetime(2026, 3, 31, 12, tzinfo=UTC)


def test_an_overdue_review_alarms_and_blocks_enrolments_until_it_is_held(
    on: World, owner_connection, reviewer
) -> None:
    began(owner_connection, on, clock.now() - timedelta(hours=721))
    operator = make_staff(on.workspace, "operate_collection")
    asked = {"purpose": "p", "consent_version": "c", "reason": "agreed in writing"}
    someone = make_principal(on.workspace).principal_id
    with staff_session(operator), pytest.raises(reviews.ReviewOverdue):
        enrol(principal_id=someone, **asked)
    assert reviews.check_due() == 1
    alarm = Alarm.objects.get(source="reviews:observations", resolved_at=None)
    assert (alarm.reason, alarm.workspace_id) == ("review_overdue", on.workspace.pk)
    decide(on, reviewer)
    assert reviews.check_due() == 0
    alarm.refresh_from_db()
    assert alarm.resolved_at is not None
    with staff_session(operator):
        enrol(principal_id=someone, **asked)


def test_a_decision_freezes_its_inputs_and_an_empty_band_is_not_measured(
    on: World, owner_connection, reviewer
) -> None:
    useful = record(owner_connection, on.principal)
    record(owner_connection, on.principal)
    record(owner_connection, on.principal, ago=40 * DAY)
    feedback(owner_connection, on.principal, useful)
    row = decide(on, reviewer)
    told = row.inputs["journal"]
    assert (told["useful_0_7"], told["useful_8_30"], told["useful_31_90"]) == (1, None, 0)
    assert told["distinct_queries_a_week"] == 1
    assert row.inputs["deletions"] == {"overdue_copies": 0, "incomplete_erasures": 0}
    assert row.inputs["curation"] == {"curated_a_week": None}
    feedback(owner_connection, on.principal, record(owner_connection, on.principal))
    row.refresh_from_db()
    assert row.inputs["journal"] == told
    with pytest.raises(DatabaseError):
        RetentionReview.objects.filter(pk=row.pk).update(inputs={})
    stranger = make_staff(on.workspace, "audit")
    with staff_session(stranger), connection.cursor() as cursor:
        cursor.execute("SELECT distinct_queries FROM observations_review_counts(%s)", [on.workspace.pk])
        assert cursor.fetchone() == (0,)


def inputs(world: World, staff: Any) -> dict[str, Any]:
    with staff_session(staff):
        return reviews.gather(SUBJECT, world.workspace.pk)


def test_bands_of_age_count_what_has_feedback_that_was_not_withdrawn(
    on: World, owner_connection, reviewer
) -> None:
    for days in (0, 7, 8, 30, 31, 89):
        feedback(
            owner_connection, on.principal, record(owner_connection, on.principal, ago=days * DAY + HOUR)
        )
        record(owner_connection, on.principal, ago=days * DAY + HOUR)
    stranger = make_principal(make_world().workspace)
    feedback(owner_connection, stranger, record(owner_connection, stranger))
    told = inputs(on, reviewer)["journal"]
    assert [told[f"useful_{band}"] for band in ("0_7", "8_30", "31_90")] == [2, 2, 2]
    owner_connection.execute("UPDATE observations_observation_feedback SET withdrawn_at = now()")
    told = inputs(on, reviewer)["journal"]
    assert [told[f"useful_{band}"] for band in ("0_7", "8_30", "31_90")] == [0, 0, 0]


def test_queries_of_a_week_are_distinct_ones(on: World, owner_connection, reviewer) -> None:
    for days, number in ((1, 1), (2, 1), (3, 2), (8, 3)):
        key = record(owner_connection, on.principal, ago=days * DAY)
        owner_connection.execute("ALTER TABLE observations_observation DISABLE TRIGGER USER")
        owner_connection.execute(
            "UPDATE observations_observation SET query_fingerprint = %s WHERE id = %s",
            [f"{number}" * 64, key],
        )
        owner_connection.execute("ALTER TABLE observations_observation ENABLE TRIGGER USER")
    assert inputs(on, reviewer)["journal"]["distinct_queries_a_week"] == 2


def test_what_changed_in_the_corpus_since_the_review_before(on: World, owner_connection, reviewer) -> None:
    began(owner_connection, on, clock.now() - 10 * DAY)
    old, gone, *_ = store(on.principal, *CHAIN)
    store(make_principal(make_world().workspace), *CHAIN)
    owner_connection.execute(
        "UPDATE graph_node SET created_at = now() - interval '11 days' WHERE id = ANY (%s::uuid[])",
        [[old, gone]],
    )
    owner_connection.execute("UPDATE graph_node SET archived_at = now() WHERE id = %s", [gone])
    first = {"passages": 2, "passages_added": 1, "passages_put_away": 1, "passages_deleted": None}
    assert inputs(on, reviewer)["corpus"] == first
    decide(on, reviewer)
    store(on.principal, wiki("delta-page", "Another step."))
    second = {"passages": 3, "passages_added": 1, "passages_put_away": 0, "passages_deleted": None}
    assert inputs(on, reviewer)["corpus"] == second
    assert inputs(on, make_staff(on.workspace, "audit"))["corpus"]["passages"] == 0


def test_what_should_be_gone_and_is_not_is_told(on: World, owner_connection, reviewer) -> None:
    record(owner_connection, on.principal, text="t", hours=24)
    with principal_session(on.principal):
        export(location=Location.API)
        erasure.begin()
    assert inputs(on, reviewer)["deletions"] == {"overdue_copies": 0, "incomplete_erasures": 1}
    owner_connection.execute("ALTER TABLE observations_export_record DISABLE TRIGGER USER")
    owner_connection.execute("UPDATE observations_export_record SET latest_expires_at = now()")
    owner_connection.execute("ALTER TABLE observations_export_record ENABLE TRIGGER USER")
    assert inputs(on, reviewer)["deletions"] == {"overdue_copies": 1, "incomplete_erasures": 1}
    owner_connection.execute("UPDATE observations_export_record SET attested_at = now()")
    assert inputs(on, reviewer)["deletions"]["overdue_copies"] == 0


def test_alarms_of_the_period_are_those_of_the_journal_since_the_review_before(
    on: World, owner_connection, reviewer
) -> None:
    began(owner_connection, on, clock.now() - 3 * DAY)
    other = make_world().workspace.pk
    for source, workspace in (
        ("expiry:observations", None),
        ("observations.expire", None),
        ("observations.activation", on.workspace.pk),
        ("observations.activation", other),
        ("traces.expire", None),
    ):
        alarms.raise_alarm(source=source, reason="failing", workspace=workspace)
    assert inputs(on, reviewer)["alarms"] == {"alarms": 3, "days": 3}
    Alarm.objects.filter(source="observations.expire").update(last_seen_at=clock.now() - 4 * DAY)
    assert inputs(on, reviewer)["alarms"] == {"alarms": 2, "days": 3}
    decide(on, reviewer)
    assert inputs(on, reviewer)["alarms"] == {"alarms": 0, "days": 0}
    alarms.raise_alarm(source="expiry:observations", reason="failing")
    assert inputs(on, reviewer)["alarms"] == {"alarms": 1, "days": 0}


def test_who_promotes_waits_for_an_overdue_review_though_it_sees_none(
    on: World, owner_connection, reviewer
) -> None:
    """What curation asks before a promotion."""
    began(owner_connection, on, clock.now() - timedelta(hours=721))
    curator = make_staff(on.workspace, "curate")
    with staff_session(curator):
        assert not RetentionReview.objects.exists()
        with pytest.raises(reviews.ReviewOverdue):
            reviews.require_reviewed(SUBJECT, on.workspace.pk)
    decide(on, reviewer)
    with staff_session(curator):
        reviews.require_reviewed(SUBJECT, on.workspace.pk)
    with clock.frozen(clock.now() + 31 * DAY), staff_session(curator):
        with pytest.raises(reviews.ReviewOverdue):
            reviews.require_reviewed(SUBJECT, on.workspace.pk)


@pytest.mark.parametrize("ahead", [timedelta(hours=23), 93 * DAY, -DAY])
def test_the_next_review_is_1_to_92_days_ahead(on: World, reviewer, ahead: timedelta) -> None:
    with pytest.raises(InvalidRequest):
        decide(on, reviewer, next_due_at=clock.now() + ahead)


def test_extending_records_and_changes_nothing(on: World, owner_connection, reviewer) -> None:
    record(owner_connection, on.principal, text="t")
    before = limits_of(owner_connection, on), deadlines(owner_connection), texts(owner_connection)
    row = decide(on, reviewer, Decision.EXTEND)
    assert row.decision == "extend_needs_schema_change"
    assert reviews.carry_out() == 0
    assert before == (limits_of(owner_connection, on), deadlines(owner_connection), texts(owner_connection))


def test_shortening_needs_another_person_and_reaches_old_rows(
    on: World, owner_connection, reviewer, other
) -> None:
    old = record(owner_connection, on.principal, ago=31 * DAY, text="old")
    young = record(owner_connection, on.principal, ago=29 * DAY, text="young")
    brief = record(owner_connection, on.principal, ago=HOUR, hours=30)
    row = decide(on, reviewer, Decision.SHORTEN, limits={"text_days": 30, "record_hours": 720})
    assert limits_of(owner_connection, on) == (None, 2160)
    assert reviews.carry_out() == 0
    with staff_session(reviewer), pytest.raises(Forbidden):
        reviews.approve(review_id=row.pk, reason=WHY)
    with staff_session(other):
        reviews.approve(review_id=row.pk, reason=WHY)
    assert limits_of(owner_connection, on) == (30, 720)
    before = deadlines(owner_connection)
    assert reviews.carry_out() == 1
    after = deadlines(owner_connection)
    assert all(after[key] <= before[key] for key in before)
    assert after[brief] == before[brief]
    assert after[old] < clock.now() < after[young]
    assert seen(on.principal, "observations_observation") == 2
    assert seen(on.principal, "observations_observation_text") == 1
    assert reviews.carry_out() == 0


def test_shorter_texts_leave_records_alone(on: World, owner_connection, reviewer, other) -> None:
    record(owner_connection, on.principal, ago=31 * DAY, text="old")
    row = decide(on, reviewer, Decision.SHORTEN, limits={"text_days": 30})
    with staff_session(other):
        reviews.approve(review_id=row.pk, reason=WHY)
    reviews.carry_out()
    assert seen(on.principal, "observations_observation") == 1
    assert seen(on.principal, "observations_observation_text") == 0


def deadlines(owner: Any) -> dict[Any, datetime]:
    return dict(owner.execute("SELECT id, record_expires_at FROM observations_observation").fetchall())


def texts(owner: Any) -> dict[Any, datetime]:
    found = owner.execute("SELECT observation_id, text_expires_at FROM observations_observation_text")
    return dict(found.fetchall())


@pytest.mark.parametrize(
    "limits",
    [
        {"text_days": 91},
        {"text_days": 180},
        {"text_days": 90},
        {"text_days": 0},
        {"record_hours": 2160},
        {"record_hours": 4320},
        {"record_hours": 23},
        {"other": 1},
        {},
    ],
)
def test_what_is_not_shorter_is_refused(on: World, reviewer, limits: dict[str, int]) -> None:
    with pytest.raises(InvalidRequest):
        decide(on, reviewer, Decision.SHORTEN, limits=limits)


@pytest.mark.parametrize("hours", [91 * 24, 180 * 24, 0])
@pytest.mark.parametrize("function", ["observations_shorten", "observations_shorten_texts"])
def test_sql_refuses_them_too(on: World, function: str, hours: int) -> None:
    with pytest.raises(DatabaseError), maintenance_session(), connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {function}(%s, %s, 10)", [on.workspace.pk, hours])


def test_others_neither_decide_nor_see(on: World, reviewer) -> None:
    with pytest.raises(Forbidden):
        decide(on, make_staff(on.workspace, "operate_collection"))
    decide(on, reviewer)
    with staff_session(make_staff(on.workspace, "view_traces")):
        assert not RetentionReview.objects.exists()


def test_a_shortening_that_is_none_any_more_is_not_approved(
    on: World, owner_connection, reviewer, other
) -> None:
    row = decide(on, reviewer, Decision.SHORTEN, limits={"text_days": 30})
    journal.set_policy(owner_connection, on.workspace.pk, text_days=20)
    with staff_session(other), pytest.raises(InvalidRequest):
        reviews.approve(review_id=row.pk, reason=WHY)


def test_reviews_go_after_1826_days_but_the_newest_stays(on: World, owner_connection, reviewer) -> None:
    keys = [decide(on, reviewer).pk for _ in range(3)]
    owner_connection.execute("ALTER TABLE operations_retentionreview DISABLE TRIGGER USER")
    for key, days in zip(keys, (1900, 1827, 1825), strict=True):
        owner_connection.execute(
            "UPDATE operations_retentionreview SET made_at = now() - make_interval(hours => %s) WHERE id = %s",
            [days * 24, key],
        )
    owner_connection.execute("ALTER TABLE operations_retentionreview ENABLE TRIGGER USER")
    assert [prune(), prune()] == [2, 0]
    owner_connection.execute("ALTER TABLE operations_retentionreview DISABLE TRIGGER USER")
    owner_connection.execute("UPDATE operations_retentionreview SET made_at = now() - interval '44000 hours'")
    owner_connection.execute("ALTER TABLE operations_retentionreview ENABLE TRIGGER USER")
    assert prune() == 0


def prune() -> int:
    with maintenance_session(), connection.cursor() as cursor:
        cursor.execute("SELECT operations_prune_reviews(100, now())")
        return int(cursor.fetchone()[0])


def test_a_row_held_by_another_transaction_is_shortened_all_the_same(
    on: World, owner_connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch skips it; the job looks again until nothing lives longer."""
    key = record(owner_connection, on.principal, ago=31 * DAY)
    owner_connection.execute("BEGIN")
    owner_connection.execute("SELECT 1 FROM observations_observation WHERE id = %s FOR UPDATE", [key])
    monkeypatch.setattr(journal_reviews.time, "sleep", lambda seconds: owner_connection.execute("COMMIT"))
    journal_reviews.carry_out(on.workspace.pk, {"record_hours": 720})
    assert seen(on.principal, "observations_observation") == 0
