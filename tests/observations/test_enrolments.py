"""Who takes part, who may say so, and what the versions of the policy tell of it."""

import pytest
from django.db import DatabaseError

from apps.core import policies
from apps.core.db.sessions import principal_session, staff_session
from apps.core.problems import Forbidden, InvalidRequest, NotFound
from apps.observations.admission import Served, admit
from apps.observations.circuit import FAILURES, circuit
from apps.observations.exceptions import AlreadyEnrolled, KillSwitchThrown
from apps.observations.models import Enrolment, KillSwitch
from apps.observations.policy import KIND, switched
from apps.observations.reporting import heartbeat_report
from apps.observations.services import enrolments
from apps.observations.standing import known
from tests.support import journal
from tests.support.factories import World, make_staff, make_world

pytestmark = pytest.mark.django_db(transaction=True)


def enrol(world: World, user, **more):
    given = {"purpose": "quality", "consent_version": "1", "reason": "agreed"} | more
    with staff_session(user):
        return enrolments.enrol(principal_id=world.principal.principal_id, **given)


def test_operators_enrol_and_nobody_else(world: World) -> None:
    operator = make_staff(world.workspace, "operate_collection")
    with pytest.raises(Forbidden):
        enrol(world, make_staff(world.workspace, "view_traces"))
    with pytest.raises(NotFound):
        enrol(world, make_staff(make_world().workspace, "operate_collection"))
    for wrong in ({"purpose": "Free words"}, {"consent_version": ""}, {"reason": " "}):
        with pytest.raises(InvalidRequest):
            enrol(world, operator, **wrong)
    enrol(world, operator)
    with pytest.raises(AlreadyEnrolled):
        enrol(world, operator)


def test_withdrawing_by_staff_is_for_good(on: World) -> None:
    operator = make_staff(on.workspace, "operate_collection")
    with staff_session(operator):
        row = Enrolment.objects.get()
        enrolments.withdraw(enrolment_id=row.pk, reason="asked by mail")
    with staff_session(make_staff(make_world().workspace, "operate_collection")), pytest.raises(NotFound):
        enrolments.withdraw(enrolment_id=row.pk, reason="asked by mail")
    with pytest.raises(DatabaseError), staff_session(operator):
        Enrolment.objects.filter(pk=row.pk).update(withdrawn_at=None)
    assert enrol(on, operator).withdrawn_at is None


def test_kill_switches_are_thrown_once_and_released(on: World) -> None:
    operator = make_staff(on.workspace, "operate_collection")
    with staff_session(operator):
        switch = enrolments.throw_kill_switch(workspace_id=on.workspace.pk, reason="look first")
        with pytest.raises(KillSwitchThrown):
            enrolments.throw_kill_switch(workspace_id=on.workspace.pk, reason="look first")
        with pytest.raises(Forbidden):
            enrolments.throw_kill_switch(workspace_id=None, reason="look first")
    assert known.standing(on.principal).journal.killed
    with staff_session(operator):
        enrolments.release_kill_switch(kill_switch_id=switch.pk, reason="looked")
        with pytest.raises(NotFound):
            enrolments.release_kill_switch(kill_switch_id=switch.pk, reason="looked")
        assert KillSwitch.objects.get().released_at is not None
    journal.forget()
    assert not known.standing(on.principal).journal.killed


def test_switches_are_read_off_the_versions(world: World, owner_connection) -> None:
    for mode in ("off", "hash", "platform-text", "off", "hash"):
        journal.set_policy(owner_connection, world.workspace.pk, mode=mode)
    with staff_session(make_staff(world.workspace, "operate_collection")):
        times = [
            row.effective_from for row in reversed(list(policies.policy_versions(world.workspace.pk, KIND)))
        ]
        found = switched(world.workspace.pk)
    assert (found.first_enabled_at, found.enabled_at, found.disabled_at) == (times[1], times[4], times[3])


def test_versions_take_effect_at_once_and_out_of_bounds_are_refused(on: World, owner_connection) -> None:
    import psycopg

    for document in ({"record_hours": 2161}, {"record_hours": 23}, {"text_days": 91}, {"mode": "on"}):
        with pytest.raises(psycopg.errors.CheckViolation):
            journal.set_policy(owner_connection, on.workspace.pk, **document)
    assert policies.kind_named(KIND).scheduled is False


def test_heartbeats_say_what_the_process_knows(on: World, settings) -> None:
    known_now = {"ceiling": "platform-text", "killed": False, "gate_open": True, "circuit_closed": True}
    before = heartbeat_report()
    assert {**known_now, "workspaces": {}}.items() <= before.items()
    known.standing(on.principal)
    assert admit(Served(on.principal, verified=False, traced=True, shared_only=True)) is None
    for _ in range(FAILURES):
        circuit.failed()
    report = heartbeat_report()
    assert report["admissions"]["not_verified"] == before["admissions"].get("not_verified", 0) + 1
    assert report["writes"] == before["writes"]
    assert not report["circuit_closed"]
    assert report["workspaces"] == {str(on.workspace.pk): {"mode": "platform-text", "generation": 1}}
    settings.OBSERVATION_MODE_CEILING = "nonsense"
    assert heartbeat_report()["ceiling"] == "off"


def test_principals_see_their_own_enrolment_alone(on: World) -> None:
    stranger = make_world().principal
    with principal_session(stranger):
        assert not Enrolment.objects.exists()
    with principal_session(on.principal):
        assert Enrolment.objects.count() == 1
    with pytest.raises(DatabaseError), principal_session(on.principal):
        Enrolment.objects.create(
            workspace_id=on.workspace.pk,
            principal_id=on.principal.principal_id,
            purpose="mine",
            consent_version="1",
        )
