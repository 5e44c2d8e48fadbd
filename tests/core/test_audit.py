"""The audit log: appended by the session's actor, chained, gap-free, verified, pruned to an anchor."""

import os
import threading
from datetime import timedelta
from io import StringIO
from uuid import uuid4

import psycopg
import pytest
import structlog
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction

from apps.core import audit, canonical, clock
from apps.core.db.sessions import (
    SessionError,
    act_for,
    maintenance_session,
    monitor_session,
    principal_session,
    staff_session,
)
from apps.core.models import AuditChain, AuditEntry
from apps.core.problems import InvalidRequest
from tests.support.factories import make_principal, make_staff, make_superuser, make_workspace, make_world

pytestmark = pytest.mark.django_db


def entries(user, **more):
    with staff_session(user):
        return list(AuditEntry.objects.filter(**more).order_by("sequence"))


def states(workspace_id):
    with maintenance_session():
        return {state.workspace_id: state for state in audit.verify()}.get(workspace_id)


def test_an_entry_says_who_did_what_to_what_when_and_why():
    world = make_world()
    curator = make_staff(world.workspace, groups=("Curator", "Auditor"))
    before, after = {"label": True}, {"label": False}
    with structlog.contextvars.bound_contextvars(request_id="r-17"), staff_session(curator):
        entry_id = audit.record(
            "feedback.change_label",
            "feedback.judgment",
            17,
            workspace=world.workspace.pk,
            reason="wrong row",
            before=before,
            after=after,
            details={"changed": 1, "receipt": world.principal.principal_id},
        )
    (entry,) = entries(curator, pk=entry_id)
    assert (entry.action, entry.object_type, entry.object_id) == (
        "feedback.change_label",
        "feedback.judgment",
        "17",
    )
    assert (entry.actor_kind, entry.actor_user_id, entry.principal_id) == ("staff", curator.pk, None)
    assert (entry.reason, entry.request_id) == ("wrong row", "r-17")
    assert (entry.before_sha256, entry.after_sha256) == (
        canonical.checksum(before),
        canonical.checksum(after),
    )
    assert entry.details == {"changed": 1, "receipt": str(world.principal.principal_id)}
    assert abs(entry.recorded_at - clock.now()) < timedelta(minutes=5)


def test_the_actor_is_the_sessions():
    world = make_world()
    auditor = make_staff(world.workspace, "audit", "curate")
    with principal_session(world.principal):
        audit.record("accounts.erase", "accounts.principal", world.principal.principal_id)
    with staff_session(auditor), act_for(world.principal.principal_id, "curate"):
        audit.record("traces.reveal_query", "traces.trace", uuid4(), reason="a complaint")
    with maintenance_session():
        audit.record("operations.prune", "operations.jobrun", uuid4(), workspace=world.workspace.pk)
    own, acted, platform = entries(auditor, workspace=world.workspace)[-3:]
    assert (own.actor_kind, own.actor_user_id, own.principal_id) == (
        "principal",
        None,
        world.principal.principal_id,
    )
    assert (acted.actor_kind, acted.actor_user_id) == ("staff", auditor.pk)
    assert acted.principal_id == world.principal.principal_id
    assert (platform.actor_kind, platform.actor_user_id, platform.principal_id) == ("platform", None, None)
    with staff_session(auditor):
        assert AuditEntry.objects.select_related("actor_user").get(pk=acted.pk).actor == auditor.username
        assert AuditEntry.objects.get(pk=platform.pk).actor == "the platform"


def test_entries_are_numbered_without_gaps_and_chained():
    world = make_world()
    auditor = make_staff(world.workspace, "audit")
    with staff_session(auditor):
        for number in range(3):
            audit.record("x.y", "x", number, workspace=world.workspace.pk)
            with transaction.atomic():
                audit.record("x.gone", "x", number, workspace=world.workspace.pk)
                transaction.set_rollback(True)
    found = entries(auditor, workspace=world.workspace)
    assert [entry.sequence for entry in found] == list(range(1, len(found) + 1))
    assert [entry.previous_hash for entry in found[1:]] == [entry.hash for entry in found[:-1]]
    assert not [entry for entry in found if entry.action == "x.gone"]
    assert states(world.workspace.pk).broken is None


def test_each_workspace_and_the_installation_have_their_own_chain():
    one, two, root = make_world(), make_world(), make_superuser()
    with staff_session(root):
        audit.record("accounts.create_user", "auth.user", 1)
        audit.record("x.y", "x", 1, workspace=one.workspace.pk)
        audit.record("x.y", "x", 1, workspace=two.workspace.pk)
    both = make_staff(one.workspace, "audit")
    seen = entries(both)
    assert {entry.workspace_id for entry in seen} == {one.workspace.pk}
    assert None in {entry.workspace_id for entry in entries(root)}
    with staff_session(both):
        assert {chain.workspace_id for chain in AuditChain.objects.all()} == {one.workspace.pk}


def test_without_the_grant_staff_see_what_they_did_and_no_more():
    world = make_world()
    curator, other = make_staff(world.workspace, "curate"), make_staff(world.workspace, "curate")
    with staff_session(curator):
        mine = audit.record("x.mine", "x", 1, workspace=world.workspace.pk)
    with staff_session(other):
        audit.record("x.theirs", "x", 1, workspace=world.workspace.pk)
    assert [entry.pk for entry in entries(curator)] == [mine]


def test_nobody_appends_to_a_chain_that_is_none_of_theirs():
    mine, other = make_world(), make_world()
    staff = make_staff(mine.workspace, "audit", "curate")
    for session, workspace in (
        (lambda: staff_session(staff), other.workspace.pk),
        (lambda: principal_session(mine.principal), other.workspace.pk),
        (lambda: principal_session(mine.principal), None),
        (monitor_session, mine.workspace.pk),
    ):
        with pytest.raises(DatabaseError), session():
            audit.record("x.y", "x", 1, workspace=workspace)
    with pytest.raises(SessionError):
        audit.record("x.y", "x", 1)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE core_auditentry SET reason = 'x'",
        "DELETE FROM core_auditentry",
        "INSERT INTO core_auditentry SELECT * FROM core_auditentry",
        "UPDATE core_auditchain SET last_hash = ''",
        "DELETE FROM core_auditchain",
        "SELECT * FROM core_audit_verify()",
        "SELECT core_audit_prune(now(), 1, '{}')",
    ],
)
def test_no_session_writes_the_log(sql):
    world = make_world()
    staff = make_staff(world.workspace, "audit", "review_retention", "curate")
    for session in (lambda: staff_session(staff), lambda: principal_session(world.principal)):
        with (
            pytest.raises(DatabaseError, match="permission denied"),
            session(),
            connection.cursor() as cursor,
        ):
            cursor.execute(sql)


def test_reasons_that_may_not_be_kept():
    world = make_world()
    staff = make_staff(world.workspace, "curate", "audit")
    for reason in ("password=hunter2", "ask jane@mail.example", "x" * 1001, "a\x00b"):
        with pytest.raises(InvalidRequest) as refused, staff_session(staff):
            audit.record("x.y", "x", 1, workspace=world.workspace.pk, reason=reason)
        assert refused.value.pointer == "/reason"
        assert reason not in str(refused.value.document())
    with principal_session(world.principal):
        entry = audit.record("x.y", "x", 1, reason="password=hunter2")
    assert [found.reason for found in entries(staff, pk=entry)] == [""]


def test_details_hold_no_secret_and_are_few():
    world = make_world()
    staff = make_staff(world.workspace, "audit")
    with staff_session(staff):
        entry = audit.record(
            "x.y", "x", 1, workspace=world.workspace.pk, details={"secret": 5, "a": ["Bearer a1b2c3d4e5f6"]}
        )
        with pytest.raises(ValueError):
            audit.record("x.y", "x", 1, details={"a": "x" * 9000})
        with pytest.raises(ValueError):
            audit.record("no dots", "x", 1)
    assert entries(staff, pk=entry)[0].details == {"secret": 5, "a": ["Bearer [redacted]"]}


# --- verification; tampering is the administrator's doing, so these commit ---


@pytest.fixture
def chain(transactional_db):
    world = make_world()
    auditor = make_staff(world.workspace, "audit")
    with staff_session(auditor):
        for number in range(6):
            audit.record("x.y", "x", number, workspace=world.workspace.pk, details={"n": number / 3})
    return world, auditor


TAMPERED = {
    "a changed reason": "UPDATE core_auditentry SET reason = 'x' WHERE {here} AND sequence = 3",
    "a changed detail": "UPDATE core_auditentry SET details = '{{}}' WHERE {here} AND sequence = 3",
    "a changed time": "UPDATE core_auditentry SET recorded_at = recorded_at + interval '1 us' "
    "WHERE {here} AND sequence = 3",
    "another actor": "UPDATE core_auditentry SET actor_user_id = 1 + actor_user_id WHERE {here} AND sequence = 3",
    "moved between fields": "UPDATE core_auditentry SET object_type = object_type || object_id, object_id = '' "
    "WHERE {here} AND sequence = 3",
    "an entry gone": "DELETE FROM core_auditentry WHERE {here} AND sequence = 3",
    "the first gone": "DELETE FROM core_auditentry WHERE {here} AND sequence = 1",
    "the last gone": "DELETE FROM core_auditentry WHERE {here} AND sequence = 6",
    "all gone": "DELETE FROM core_auditentry WHERE {here}",
    "the head moved": "UPDATE core_auditchain SET last_hash = repeat('0', 64) WHERE {here}",
    "the head gone": "DELETE FROM core_auditchain WHERE {here}",
}
FIRST_BROKEN = {
    "the first gone": 2,
    "the last gone": 6,
    "all gone": 1,
    "the head moved": 7,
    "the head gone": 1,
}


@pytest.mark.parametrize("tampering", TAMPERED)
def test_tampering_is_found_at_its_entry(chain, admin_connection, tampering):
    world, _ = chain
    assert states(world.workspace.pk).broken is None
    here = f"workspace_id = '{world.workspace.pk}'"
    admin_connection.execute(TAMPERED[tampering].format(here=here))
    found = states(world.workspace.pk)
    expected = FIRST_BROKEN.get(tampering, 3)
    assert found.broken in ({3, 4} if tampering == "an entry gone" else {expected})
    with pytest.raises(CommandError, match="1 of"):
        call_command("verify_audit", stdout=StringIO())


def test_the_command_says_how_far_each_chain_is_whole(chain):
    world, auditor = chain
    out = StringIO()
    call_command("verify_audit", stdout=out)
    assert f"workspace {world.workspace.pk}: 6 entries, whole through 6" in out.getvalue()
    with staff_session(auditor):
        head = AuditChain.objects.get(workspace=world.workspace)
    assert (head.verified_sequence, head.broken_sequence) == (6, None)
    assert head.verified_at is not None


def test_writers_at_once_leave_no_gap(chain):
    world, auditor = chain
    errors = []

    def write():
        try:
            for number in range(10):
                with staff_session(auditor):
                    audit.record("x.parallel", "x", number, workspace=world.workspace.pk)
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    found = states(world.workspace.pk)
    assert (found.entries, found.through, found.broken) == (46, 46, None)


def age(workspace_id, through):
    """Make the first entries old, with the hashes that they would have had. As the administrator."""
    with psycopg.connect(os.environ["DATABASE_ADMIN_URL"], autocommit=True) as admin:
        rows = admin.execute(
            "SELECT sequence FROM core_auditentry WHERE workspace_id = %s ORDER BY sequence", [workspace_id]
        ).fetchall()
        for (sequence,) in rows:
            days = 1827 if sequence <= through else 0
            admin.execute(
                "UPDATE core_auditentry e SET recorded_at = e.recorded_at - %s * interval '1 day', previous_hash = "
                "coalesce((SELECT p.hash FROM core_auditentry p WHERE p.workspace_id = e.workspace_id "
                "AND p.sequence = e.sequence - 1), '') WHERE workspace_id = %s AND sequence = %s",
                [days, workspace_id, sequence],
            )
            admin.execute(
                "UPDATE core_auditentry e SET hash = core_audit_hash(previous_hash, sequence, id, workspace_id, "
                "recorded_at, actor_kind, actor_user_id, principal_id, action, object_type, object_id, reason, "
                "before_sha256, after_sha256, details, request_id) WHERE workspace_id = %s AND sequence = %s",
                [workspace_id, sequence],
            )
        admin.execute(
            "UPDATE core_auditchain c SET last_hash = (SELECT hash FROM core_auditentry e WHERE e.workspace_id = "
            "c.workspace_id ORDER BY sequence DESC LIMIT 1) WHERE workspace_id = %s",
            [workspace_id],
        )


def prune(**more):
    with maintenance_session():
        return audit.prune(**more)


def test_pruning_takes_the_old_beginning_and_keeps_the_anchor(chain):
    world, auditor = chain
    age(world.workspace.pk, 4)
    assert states(world.workspace.pk).broken is None
    assert prune(batch=3) == 3
    assert prune(batch=3) == 1
    assert prune() == 0
    found = states(world.workspace.pk)
    assert (found.entries, found.through, found.broken) == (2, 6, None)
    with staff_session(auditor):
        audit.record("x.later", "x", 1, workspace=world.workspace.pk)
    assert states(world.workspace.pk).through == 7


def test_a_chain_pruned_whole_still_continues_from_its_anchor(chain):
    world, auditor = chain
    age(world.workspace.pk, 6)
    assert prune() == 6
    assert states(world.workspace.pk).broken is None
    with staff_session(auditor):
        audit.record("x.later", "x", 1, workspace=world.workspace.pk)
    found = states(world.workspace.pk)
    assert (found.entries, found.through, found.broken) == (1, 7, None)


def test_nothing_younger_than_the_promise_is_pruned_whatever_is_asked(chain):
    assert prune(cutoff=clock.now() + timedelta(days=1)) == 0


def test_a_held_entry_stops_the_pruning(chain):
    world, auditor = chain
    age(world.workspace.pk, 5)
    held = entries(auditor, workspace=world.workspace)[2].pk
    assert prune(held=[held]) == 2
    assert prune(held=[held]) == 0
    assert prune() == 3


def test_an_entry_of_an_erased_principal_stays():
    world = make_world()
    auditor = make_staff(world.workspace, "audit")
    other = make_principal(world.workspace)
    with principal_session(other):
        entry = audit.record("accounts.erase", "accounts.principal", other.principal_id)
    assert entries(auditor, pk=entry)[0].actor == f"principal {other.principal_id}"
    assert make_workspace() is not None
