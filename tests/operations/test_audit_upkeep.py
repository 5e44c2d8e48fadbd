"""The audit log is verified every night and pruned past its term, but not past what a hold covers."""

from datetime import timedelta

import pytest
from django.test import Client

from apps.core import audit, clock
from apps.core.db.sessions import principal_session, staff_session
from apps.core.problems import Unprocessable
from apps.operations import holds, pruning
from apps.operations.models import Alarm
from apps.operations.tasks import CHAIN_BROKEN, prune, verify_audit
from tests.support.factories import make_staff, make_world

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def entries():
    """Three entries of the chain of a workspace."""
    world = make_world()
    with principal_session(world.principal):
        return world, [audit.record("tests.act", "tests.thing", n) for n in range(3)]


def broken_chains() -> int:
    return dict(verify_audit.function() or {})["broken_chains"]


def test_a_broken_chain_is_an_alarm_until_it_is_whole_again(entries, admin_connection) -> None:
    assert broken_chains() == 0
    assert not Alarm.objects.filter(reason=CHAIN_BROKEN).exists()
    _, middle, _ = entries[1]
    admin_connection.execute("ALTER TABLE core_auditentry DISABLE TRIGGER USER")
    admin_connection.execute("UPDATE core_auditentry SET action = 'tests.other' WHERE id = %s", [middle])
    assert broken_chains() == 1
    alarm = Alarm.objects.get(reason=CHAIN_BROKEN, resolved_at=None)
    assert alarm.details == {"chains": 1}
    admin_connection.execute("UPDATE core_auditentry SET action = 'tests.act' WHERE id = %s", [middle])
    admin_connection.execute("ALTER TABLE core_auditentry ENABLE TRIGGER USER")
    assert broken_chains() == 0
    alarm.refresh_from_db()
    assert alarm.resolved_at is not None


def place(world, entry):
    return holds.place(
        workspace_id=world.workspace.pk,
        reference="case",
        reason="asked",
        items=[(pruning.AUDIT_ENTRY, entry)],
    )


def test_only_an_entry_that_the_reviewer_may_read_is_held(entries) -> None:
    world, (_, middle, _) = entries
    with staff_session(make_staff(world.workspace, "review_retention")), pytest.raises(Unprocessable):
        place(world, middle)
    with staff_session(make_staff(world.workspace, "review_retention", "audit")):
        assert place(world, middle)


def test_the_page_of_an_entry_offers_the_hold_to_reviewers_alone(entries) -> None:
    world, (_, middle, _) = entries
    page = f"/admin/core/auditentry/{middle}/"
    answers = {}
    for grants in (("audit",), ("audit", "review_retention")):
        client = Client()
        client.force_login(make_staff(world.workspace, *grants))
        assert client.get(f"{page}change/").status_code == 200
        answers[grants] = client.get(f"{page}hold/").status_code
    assert list(answers.values()) == [404, 200]


def left(admin) -> int:
    found = admin.execute("SELECT count(*) FROM core_auditentry WHERE action = 'tests.act'")
    return int(found.fetchone()[0])


def test_entries_go_after_1826_days_and_a_held_one_keeps_the_rest_of_its_chain(
    entries, admin_connection
) -> None:
    world, (_, middle, _) = entries
    prune.function()
    assert left(admin_connection) == 3
    placer, releaser = (make_staff(world.workspace, "review_retention", "audit") for _ in range(2))
    with staff_session(placer):
        hold = place(world, middle)
    long_ago = clock.now() - timedelta(days=1900)
    admin_connection.execute("ALTER TABLE core_auditentry DISABLE TRIGGER USER")
    admin_connection.execute(
        "UPDATE core_auditentry SET recorded_at = %s WHERE workspace_id = %s AND sequence <= "
        "(SELECT max(sequence) FROM core_auditentry WHERE action = 'tests.act')",
        [long_ago, world.workspace.pk],
    )
    admin_connection.execute("ALTER TABLE core_auditentry ENABLE TRIGGER USER")
    prune.function()
    assert left(admin_connection) == 2
    with staff_session(releaser):
        holds.release(hold_id=hold.pk, reason="over")
    prune.function()
    assert left(admin_connection) == 0
