"""On with evidence and four eyes, off by one person, and off only when every process is seen to follow."""

from datetime import timedelta
from typing import Any

import pytest

from apps.core import clock, policies
from apps.core.db.sessions import staff_session
from apps.core.ids import uuid7
from apps.core.problems import Forbidden, InvalidRequest, NotFound, StaleVersion
from apps.observations.exceptions import (
    ActivationBlocked,
    ActivationNeeded,
    ActivationRunning,
    ActivationState,
    ApprovalVoid,
    MachineFirst,
    OneEnrolmentNeeded,
)
from apps.observations.models import Evidence
from apps.observations.policy import KIND
from apps.observations.services import activation, evidence
from apps.operations.holds import FourEyes
from apps.operations.models import Process
from tests.support import journal
from tests.support.activation import RELEASE, Scene, items, knows, make_scene, mode, process
from tests.support.api import Api, code_of
from tests.support.factories import make_principal, make_staff, make_world

pytestmark = pytest.mark.django_db(transaction=True)


def blockers(scene: Scene) -> dict[str, str]:
    """What a refused request names."""
    with pytest.raises(ActivationBlocked) as blocked:
        scene.request()
    return dict(blocked.value.more["items"])


def test_each_missing_item_blocks(ready: Scene, owner_connection) -> None:
    for item in items():
        owner_connection.execute("DELETE FROM observations_evidence WHERE item = %s", [item.code])
        assert set(blockers(ready)) == {f"{item.code}:{part.value}" for part in item.parts}
        ready.give(item.code)
    assert ready.request().state == "ready"


def test_each_stale_item_blocks(ready: Scene) -> None:
    for item in items():
        if item.fresh is None:
            continue
        ready.give(item.code, observed_at=clock.now() - item.fresh - timedelta(seconds=1))
        assert blockers(ready) == {f"{item.code}:{part.value}": "stale" for part in item.parts}
        ready.give(item.code, observed_at=clock.now() - item.fresh + timedelta(seconds=60))
    assert ready.request().state == "ready"


def test_a_failed_item_blocks_until_a_newer_row_supersedes_it(ready: Scene) -> None:
    ready.give("A4", "fail")
    with pytest.raises(ActivationBlocked):
        ready.request()
    ready.give("A4")
    assert ready.request().state == "ready"
    with staff_session(ready.operator):
        rows = list(Evidence.objects.filter(item="A4", part="machine").order_by("recorded_at"))
    assert [row.supersedes_id for row in rows] == [None, rows[0].pk, rows[1].pk]


def test_evidence_is_append_only(ready: Scene) -> None:
    from django.db import DatabaseError

    with pytest.raises(DatabaseError), staff_session(ready.operator):
        Evidence.objects.update(result="pass")
    with pytest.raises(DatabaseError), staff_session(ready.operator):
        Evidence.objects.all().delete()


@pytest.mark.parametrize("change", ["release", "unknown release", "migration", "grant", "setting"])
def test_changes_make_the_bound_items_stale(
    ready: Scene, settings, owner_connection, monkeypatch, change
) -> None:
    from apps.observations.activation import bindings

    undo = None
    if change == "release":
        settings.RELEASE = "another"
    elif change == "unknown release":
        settings.RELEASE = ""
    elif change == "migration":
        monkeypatch.setattr(bindings, "migrations_of_release", lambda: "another")
    elif change == "grant":
        owner_connection.execute("GRANT SELECT ON observations_maintenance_state TO memory_monitor")
        undo = "REVOKE SELECT ON observations_maintenance_state FROM memory_monitor"
    else:
        settings.OBSERVATION_NEW_NAME = 1
    try:
        found = blockers(ready)
    finally:
        if undo:
            owner_connection.execute(undo)
    assert set(found.values()) == {"stale"}
    assert {"A3:machine", "A5:machine"} <= found.keys()
    assert not {"B10:human", "B11:human"} & found.keys()


def test_undeclared_backups_block(ready: Scene, settings) -> None:
    settings.ERASURE_BACKUP_DAYS = None
    assert blockers(ready) == {"B10:human": "failed"}


@pytest.mark.parametrize(
    "case", ["none", "not confirmed", "confirmed long ago", "only for tests", "switched off"]
)
def test_alarms_that_reach_nobody_block(ready: Scene, owner_connection, case) -> None:
    change = {
        "none": "DELETE FROM operations_destination",
        "not confirmed": "UPDATE operations_destination SET confirmed_at = NULL",
        "confirmed long ago": "UPDATE operations_destination SET confirmed_at = now() - interval '181 days'",
        "only for tests": "UPDATE operations_destination SET use = 'test'",
        "switched off": "UPDATE operations_destination SET active = false",
    }[case]
    owner_connection.execute(change)
    assert blockers(ready) == {"B7:machine": "failed", "B7:human": "failed"}


def test_processes_of_another_release_or_with_the_mode_on_block(scene: Scene) -> None:
    assert scene.examine("B1").result == "fail"  # nobody reports
    for kind in ("web", "worker", "beat"):
        process(kind)
    assert scene.examine("B1").result == "pass"
    other = process("worker", release="another")
    row = scene.examine("B1")
    assert (row.result, row.measured["other_release"]) == ("fail", 1)
    other.delete()
    on = process("web", **knows(scene, "hash", 1))
    row = scene.examine("B1")
    assert (row.result, row.measured["mode_on"]) == ("fail", 1)
    on.delete()
    assert scene.examine("B1").result == "pass"
    Process.objects.create(kind="web", release=RELEASE, pid=1, started_at=clock.now(), report={})
    assert scene.examine("B1").result == "fail"  # one that says nothing


def test_the_machine_looks_at_migrations_database_and_roles(scene: Scene) -> None:
    assert scene.examine("A2").result == "pass"
    assert scene.examine("A3").measured["server_version"] >= 150000
    assert scene.examine("A4").measured.keys() == {"differences"}
    with pytest.raises(InvalidRequest):
        scene.examine("A1")
    with pytest.raises(ActivationState):
        scene.examine("C2")


def test_the_requester_cannot_approve(ready: Scene) -> None:
    with pytest.raises(ActivationState):
        ready.approve()
    ready.request()
    with pytest.raises(FourEyes):
        ready.approve(ready.operator)
    with pytest.raises(Forbidden):
        ready.approve(make_staff(ready.world.workspace, "audit"))
    with pytest.raises(NotFound):
        ready.approve(make_staff(make_world().workspace, "operate_collection"))
    with staff_session(ready.reviewer), pytest.raises(StaleVersion):
        activation.approve(run_id=ready.run_id, version="0" * 64, reason="seen")
    assert ready.approve().state == "approved"


def test_any_change_voids_and_so_do_25_hours(ready: Scene, owner_connection) -> None:
    ready.request()
    ready.give("B11")
    with pytest.raises(ApprovalVoid):
        ready.approve()
    ready.request()
    journal.set_policy(owner_connection, ready.world.workspace.pk, mode="off", record_hours=48)
    with pytest.raises(ApprovalVoid):
        ready.approve()
    ready.request()
    late = (
        "UPDATE observations_activation_run SET valid_until = valid_until - interval '25 hours' WHERE id = %s"
    )
    owner_connection.execute(late, [ready.run_id])
    with pytest.raises(ApprovalVoid):
        ready.approve()
    ready.request()
    ready.approve()
    ready.give("B11")
    with pytest.raises(ApprovalVoid):
        ready.enable()
    assert mode(ready) == "off"


def test_enabling_publishes_the_mode_and_nothing_else_does(ready: Scene) -> None:
    def publish() -> Any:
        with staff_session(ready.operator):
            before = policies.followed(ready.world.workspace.pk, KIND)
            policies.publish_policy(
                workspace_id=ready.world.workspace.pk,
                kind=KIND,
                document=before.document | {"mode": "platform-text"},
                if_match=before.hash,
                reason="directly",
            )

    with pytest.raises(ActivationNeeded):
        publish()
    ready.request()
    with pytest.raises(ActivationState):
        ready.enable()
    ready.approve()
    with pytest.raises(ActivationNeeded):
        publish()
    run = ready.enable()
    assert (run.state, run.generation, mode(ready)) == ("enabled", 1, "platform-text")
    with staff_session(ready.operator):
        (c1, *_) = Evidence.objects.filter(item="C1")
    assert (c1.actor_id, c1.second_actor_id) == (ready.operator.pk, ready.reviewer.pk)
    ready.stop()
    with pytest.raises(ActivationNeeded):
        publish()


def test_a_pilot_has_one_enrolment(ready: Scene) -> None:
    second = make_principal(ready.world.workspace)
    journal.take_part(ready.world, second)
    ready.request()
    ready.approve()
    with pytest.raises(OneEnrolmentNeeded):
        ready.enable()
    assert mode(ready) == "off"


def test_no_second_enrolment_before_the_pilot_is_verified(enabled: Scene) -> None:
    second = make_principal(enabled.world.workspace)
    with pytest.raises(OneEnrolmentNeeded):
        journal.take_part(enabled.world, second)
    enabled.give_all("C")
    assert (
        activation.advance_run(run_id=enabled.run_id, user_id=enabled.operator.pk).state == "pilot_verified"
    )
    journal.take_part(enabled.world, second)


def test_vouching_takes_a_second_person_after_the_machine(scene: Scene) -> None:
    with pytest.raises(MachineFirst):
        scene.vouch("A3")
    scene.examine("A3")
    with pytest.raises(FourEyes):
        scene.vouch("A3", scene.operator)
    with pytest.raises(InvalidRequest):
        scene.vouch("A2")
    with pytest.raises(Forbidden):
        scene.vouch("A3", make_staff(scene.world.workspace, "audit"))
    assert scene.vouch("A3").second_actor_id == scene.operator.pk


def test_one_run_at_a_time_and_not_for_strangers(scene: Scene) -> None:
    with pytest.raises(ActivationRunning):
        make_scene(scene.world)
    with pytest.raises(NotFound), staff_session(make_staff(make_world().workspace, "operate_collection")):
        activation.stop(run_id=scene.run_id, reason="no")
    with pytest.raises(Forbidden), staff_session(scene.reviewer):
        activation.stop(run_id=scene.run_id, reason="no")


def posted(scene: Scene, **more: Any) -> dict[str, Any]:
    return {
        "run_id": str(scene.run_id),
        "item": "A1",
        "result": "pass",
        "release": RELEASE,
        "observed_at": clock.iso(clock.now()),
        "method": "ci.1",
        "measured": {"clean_tree": True, "equals_main": True, "suites_green": True, "run": 4711},
    } | more


def test_ci_posts_and_never_what_should_not_be_kept(scene: Scene) -> None:
    api = Api(scene.world.principal, "evidence", superuser=scene.world.superuser)
    answer = api.post("/v1/observations/evidence", posted(scene))
    assert answer.status_code == 201, answer.content
    dsn, token, mail = "postgresql://u:p@db/x", "ghp_" + "a1B2" * 9, "someone@example.org"
    for secret in (dsn, token, mail, "host=db password=x"):
        for wrong in (
            {"note": f"see {secret}"},
            {"measured": posted(scene)["measured"] | {"x": secret}},
            {"method": secret},
            {"object": {"id": secret}},
        ):
            answer = api.post("/v1/observations/evidence", posted(scene, **wrong))
            assert answer.status_code == 400, wrong
            assert secret not in answer.content.decode()
    for wrong in (
        {"item": "A2"},
        {"note": "a" * 501},
        {"measured": {"clean_tree": True}},
        {"item": "A5", "measured": {}},
        {"observed_at": clock.iso(clock.now() + timedelta(hours=1))},
    ):
        assert api.post("/v1/observations/evidence", posted(scene, **wrong)).status_code == 400, wrong
    assert code_of(api.post("/v1/observations/evidence", posted(scene, run_id=str(uuid7())))) == (
        "unknown_activation_run"
    )
    stranger = Api(make_world().principal, "evidence", superuser=scene.world.superuser)
    assert stranger.post("/v1/observations/evidence", posted(scene)).status_code == 404
    with staff_session(scene.operator):
        assert [(row.item, row.token_id is None) for row in Evidence.objects.all()] == [("A1", False)]


def test_no_note_of_staff_holds_them_either(scene: Scene) -> None:
    for secret in ("postgresql://u:p@db/x", "someone@example.org"):
        with staff_session(scene.reviewer), pytest.raises(InvalidRequest):
            evidence.attest(run_id=scene.run_id, item="B10", result="pass", note=secret)
