"""What the start page says of the journal: how expiry stands, what is overdue, which reviews wait for whom."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from guardian.shortcuts import assign_perm

from apps.core import clock
from apps.core.db.sessions import staff_session
from apps.observations.services.reviews import SUBJECT
from apps.operations import alarms, reviews, samples
from apps.operations.models import Job, JobRun
from apps.operations.models.reviews import Decision
from tests.observations.test_pages import client, words
from tests.support import journal
from tests.support.factories import World, make_staff, make_world
from tests.support.statements import sent

pytestmark = pytest.mark.django_db(transaction=True)

URL = "/admin/"
MINUTE = timedelta(minutes=1)


@pytest.fixture
def expired(on: World) -> World:
    """Jobs of a whole installation, whose names stand before the journal's; expiry succeeded 4 minutes ago."""
    now = clock.now()
    for name in ("feedback.prune_strength", "feedback.verify_ledger", "graph.embed", "graph.verify"):
        Job.objects.create(name=name, last_success_at=now)
    for name in (
        "learning.prune",
        "learning.recheck",
        "learning.resume",
        "operations.prune",
        "traces.measure",
    ):
        Job.objects.create(name=name, last_success_at=now)
    Job.objects.create(name="observations.expire", last_success_at=now - 4 * MINUTE)
    run(now - 4 * MINUTE)
    return on


def run(at: datetime) -> JobRun:
    return JobRun.objects.create(
        name="observations.expire",
        lease_key="observations.expire",
        asked_at=at,
        started_at=at,
        finished_at=at,
        lease_expires_at=at,
        outcome="succeeded",
    )


def sampled(value: float, ago: timedelta = MINUTE) -> None:
    readings = [samples.Reading(f"observation_expired_{what}", value) for what in ("records", "texts")]
    samples.record(readings, at=clock.now() - ago)


def promises(viewer: Client) -> str:
    return words(viewer.get(URL)).split("Promises kept")[-1]


def test_expiry_of_the_journal_stands_first_among_promises(expired: World) -> None:
    sampled(0.0)
    viewer = client(expired, "audit")
    text = promises(viewer)
    assert "4 min ago · nothing overdue · Journal status" in text.split("feedback.verify_ledger")[0]
    html = viewer.get(URL).content.decode()
    assert "/admin/observations/status/" in html
    assert f"/admin/operations/jobrun/{JobRun.objects.get().pk}/change/" in html


def test_overdue_rows_and_their_absence_of_a_measurement_are_told(expired: World) -> None:
    viewer = client(expired, "audit")
    assert "overdue rows: not measured" in promises(viewer)
    sampled(0.0, ago=16 * MINUTE)
    assert "overdue rows: not measured" in promises(viewer)
    sampled(2.0)
    assert "✕ 4 overdue" in promises(viewer)


def test_a_job_that_is_late_or_fails_stands_before_all_others(expired: World) -> None:
    Job.objects.filter(name="traces.measure").update(consecutive_failures=3)
    Job.objects.filter(name="observations.expire").update(last_success_at=clock.now() - 31 * MINUTE)
    text = promises(client(expired, "audit"))
    assert text.index("observations.expire") < text.index("traces.measure") < text.index("feedback")
    assert "failed 3 times" in text
    assert "✕ overdue" in text.split("traces.measure")[0]


def test_before_the_first_run_no_promise_is_shown_as_kept(on: World) -> None:
    assert "No job has run yet." in promises(client(on, "audit"))


def test_an_alarm_of_the_journal_reads_as_a_sentence(on: World) -> None:
    alarms.raise_alarm(source="expiry:observations", reason="success_stale")
    assert "expiry:observations has not succeeded in time" in words(client(on, "audit").get(URL))


def moved(owner: Any, world: World, by: timedelta) -> None:
    """The versions of a workspace's policy, published earlier."""
    owner.execute("ALTER TABLE core_storedpolicy DISABLE TRIGGER USER")
    owner.execute(
        "UPDATE core_storedpolicy SET effective_from = effective_from - %s WHERE workspace_id = %s",
        [by, world.workspace.pk],
    )
    owner.execute("ALTER TABLE core_storedpolicy ENABLE TRIGGER USER")


@pytest.mark.parametrize(
    ("kept_for", "said"),
    [(22, ""), (24, "falls due"), (31, "is overdue")],
    ids=["in eight days", "in six days", "a day ago"],
)
def test_a_review_waits_for_its_reviewer_from_a_week_before(
    on: World, owner_connection: Any, kept_for: int, said: str
) -> None:
    moved(owner_connection, on, timedelta(days=kept_for))
    text = words(client(on, "review_retention").get(URL))
    assert ("Retention review of observations" in text) == bool(said)
    if said:
        assert f"Retention review of observations {said} {on.workspace.name}" in text
        assert "Start review" in text
    for other in (client(on, "audit", "operate_collection"), client(make_world(), "review_retention")):
        assert "Retention review of" not in words(other.get(URL))


def test_a_decision_moves_the_review_and_a_proposal_does_not(on: World, owner_connection: Any) -> None:
    moved(owner_connection, on, timedelta(days=31))
    reviewer = make_staff(on.workspace, "review_retention")
    ahead = clock.now() + timedelta(days=20)

    def decide(decision: Decision, **limits: int) -> None:
        reviews.decide(
            subject=SUBJECT,
            workspace_id=on.workspace.pk,
            decision=decision,
            next_due_at=ahead,
            limits=limits,
            reason="looked at the numbers",
        )

    with staff_session(reviewer):
        decide(Decision.SHORTEN, text_days=30)
        assert reviews.due_by_workspace(SUBJECT, [on.workspace.pk])[on.workspace.pk] < clock.now()
        decide(Decision.KEEP)
        assert reviews.due_by_workspace(SUBJECT, [on.workspace.pk]) == {on.workspace.pk: ahead}
    assert "Retention review of" not in words(client(on, "review_retention").get(URL))


def test_the_page_asks_as_much_for_many_workspaces_as_for_one(expired: World, owner_connection: Any) -> None:
    user = make_staff(expired.workspace, "review_retention", "audit")
    signed_in = Client()
    signed_in.force_login(user)

    def asked() -> int:
        with sent() as statements:
            assert signed_in.get(URL).status_code == 200
        return len(statements)

    asked()
    one = asked()
    for _ in range(5):
        more = make_world()
        journal.set_policy(owner_connection, more.workspace.pk)
        moved(owner_connection, more, timedelta(days=29))
        with staff_session(more.superuser):
            for grant in ("review_retention", "audit"):
                assign_perm(f"accounts.{grant}", user, more.workspace)
    assert words(signed_in.get(URL)).count("falls due") == 5
    assert asked() == one
