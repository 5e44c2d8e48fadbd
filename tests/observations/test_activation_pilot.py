"""C and D through the front door: what a pilot's search leaves, who leaves nothing, and off with proof."""

import threading
from datetime import timedelta
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from apps.accounts.models import ApiToken
from apps.core import clock
from apps.core.db.sessions import maintenance_session, principal_session, staff_session
from apps.core.models import AuditEntry
from apps.observations import dropping, tasks
from apps.observations.activation import front_door, pilots, probes
from apps.observations.constants import SPACE
from apps.observations.exceptions import ActivationState
from apps.observations.models import Observation
from apps.observations.services import activation, unattended
from apps.operations.models import Alarm
from tests.observations.test_admission import QUERY, shared_of
from tests.support import journal
from tests.support.activation import Scene, knows, mode, process
from tests.support.factories import make_token
from tests.support.library import CHAIN, store

pytestmark = pytest.mark.django_db(transaction=True)

LATER = timedelta(seconds=10)


@pytest.fixture
def pilot(enabled: Scene) -> Scene:
    """On, with something to find in the shared corpus."""
    store(shared_of(enabled.world), *CHAIN)
    return enabled


def records(scene: Scene) -> int:
    with principal_session(scene.world.principal):
        return Observation.objects.count()


def alarms_of(scene: Scene, source: str = unattended.ALARM_SOURCE) -> set[str]:
    with staff_session(scene.operator):
        found = Alarm.objects.filter(source=source, workspace=scene.world.workspace, resolved_at=None)
        return set(found.values_list("reason", flat=True))


def test_c_passes_through_the_front_door(pilot: Scene) -> None:
    found = pilot.examine("C2", query=QUERY)
    assert (found.result, found.measured["same_ranking"], found.measured["cited_hits"]) == ("pass", True, 1)
    assert (found.measured["life_hours"], records(pilot)) == (2160, 1)
    assert pilot.examine("C3").measured == {"status": 200, "ids_told": 0, "stored": 0}
    assert pilot.examine("C4").measured["refused"] == 3
    assert (pilot.run().state, records(pilot)) == ("enabled", 1)
    pilot.vouch("C2")
    assert pilot.run().state == "pilot_verified"
    with staff_session(pilot.operator):
        tokens = ApiToken.objects.filter(name=front_door.REASON).defer("secret_sha256")
        assert [token.revoked_at is None for token in tokens] == [False] * 3
        assert all(QUERY not in str(vars(entry)) for entry in AuditEntry.objects.all())


@pytest.mark.parametrize("broken", ["nothing stored", "another ranking", "no citation", "shorter life"])
def test_c2_failing_switches_off_and_upkeep_goes_on(
    pilot: Scene, owner_connection, monkeypatch, broken: str
) -> None:
    journal.record(owner_connection, pilot.world.principal, ago=timedelta(hours=2), hours=1)
    if broken == "nothing stored":
        monkeypatch.setattr("apps.search.observed.records.store", lambda **given: False)
    elif broken == "another ranking":
        real = pilots.front_door.post

        def swapped(path: str, *more: Any) -> Any:
            answer = real(path, *more)
            answer.document.get("results", []).reverse()
            return answer

        monkeypatch.setattr(pilots.front_door, "post", swapped)
    elif broken == "no citation":
        monkeypatch.setattr("apps.observations.api.give_feedback", lambda **given: "observation_unavailable")
    else:
        monkeypatch.setattr(pilots, "collecting", lambda document: Shorter)
    assert pilot.examine("C2", query=QUERY).result == "fail"
    assert (pilot.run().state, pilot.run().fenced, mode(pilot)) == ("stopping", True, "off")
    assert alarms_of(pilot) == {unattended.FAILED}
    assert tasks.expire.function()["records"] == 1


class Shorter:
    record_hours = 2159


@pytest.mark.parametrize("item", ["C3", "C4"])
def test_a_door_that_stores_for_anyone_fails_and_switches_off(pilot: Scene, monkeypatch, item: str) -> None:
    if item == "C3":
        # As if admission did not look at the list: who asks is one whom it would keep.
        monkeypatch.setattr(front_door, "probe_principal", lambda *given: pilot.world.principal.principal_id)
    else:
        secret = make_token(pilot.world.principal, "search", superuser=pilot.world.superuser)
        real = front_door.post

        def trusting(path: str, body: Any, headers: Any) -> Any:
            forged = headers.get("X-Principal") and "Authorization" not in headers
            return real(path, body, front_door.bearer(secret) if forged else headers)

        monkeypatch.setattr(front_door, "post", trusting)
    found = pilot.examine(item)
    assert (found.result, found.measured["stored"], found.measured["ids_told"]) == ("fail", 1, 1)
    assert (pilot.run().state, mode(pilot)) == ("stopping", "off")


def test_a_c_that_a_person_denies_switches_off(pilot: Scene) -> None:
    pilot.examine("C2", query=QUERY)
    pilot.vouch("C2", result="fail")
    assert (pilot.run().state, mode(pilot)) == ("stopping", "off")
    assert alarms_of(pilot) == {unattended.FAILED}


def enabled_ago(scene: Scene, owner_connection: Any, hours: int) -> None:
    owner_connection.execute(
        "UPDATE observations_activation_run SET enabled_at = now() - make_interval(hours => %s) WHERE id = %s",
        [hours, scene.run_id],
    )


def test_a_pilot_without_c2_and_c3_ends_after_24_hours(pilot: Scene, owner_connection) -> None:
    enabled_ago(pilot, owner_connection, 23)
    assert tasks.stop_unsafe.function() == {"stopped": 0}
    assert mode(pilot) == "platform-text"
    enabled_ago(pilot, owner_connection, 25)
    pilot.examine("C2", query=QUERY)
    pilot.examine("C3")
    assert tasks.stop_unsafe.function() == {"stopped": 1}  # nobody has vouched for C2
    run = pilot.run()
    assert (run.state, run.fenced, run.stopped_by_id, run.stopped_generation) == ("stopping", True, None, 2)
    assert (mode(pilot), alarms_of(pilot)) == ("off", {unattended.UNPROVEN})
    assert tasks.stop_unsafe.function() == {"stopped": 0}
    assert records(pilot) == 1
    assert "failed" not in tasks.expire.function()


def test_a_proven_pilot_goes_on(pilot: Scene, owner_connection) -> None:
    enabled_ago(pilot, owner_connection, 25)
    pilot.examine("C2", query=QUERY)
    pilot.vouch("C2")
    pilot.examine("C3")
    assert pilot.run().state == "enabled"  # C4 is missing
    assert tasks.stop_unsafe.function() == {"stopped": 0}
    assert mode(pilot) == "platform-text"


def test_nothing_is_stopped_without_cause_or_fence(pilot: Scene) -> None:
    given = [pilot.run_id, pilot.run_id, '{"mode": "off"}', "0" * 64]
    with maintenance_session(), connection.cursor() as cursor:
        unattended.fence()
        cursor.execute("SELECT observations_stop_run(%s, %s, %s, %s)", given)
        assert cursor.fetchone() == (False,)
    with pytest.raises(Exception, match="no_fence"), maintenance_session(), connection.cursor() as cursor:
        cursor.execute("SELECT observations_stop_run(%s, %s, %s, %s)", given)
    assert mode(pilot) == "platform-text"


def test_off_waits_for_open_writes_and_lets_none_through(enabled: Scene, owner_connection) -> None:
    with psycopg.connect(
        owner_connection.info.dsn, password=owner_connection.info.password or None
    ) as writer:
        writer.execute("SELECT pg_advisory_xact_lock_shared(%s, hashtext('all'))", [SPACE])
        stopped = threading.Thread(target=lambda: (enabled.stop(), connection.close()))
        stopped.start()
        stopped.join(0.3)
        assert stopped.is_alive()
        assert mode(enabled) == "platform-text"
        with pytest.raises(ActivationState):
            enabled.examine("D2")
        writer.commit()
        stopped.join(30)
    assert (enabled.run().state, enabled.run().fenced, mode(enabled)) == ("stopping", True, "off")


@pytest.mark.parametrize(
    "case", ["old generation", "mode on", "not heard since", "says nothing", "no fence", "still stores"]
)
def test_off_is_unverified_until_all_follow_and_nothing_is_stored(
    pilot: Scene, owner_connection, monkeypatch, case: str
) -> None:
    run = pilot.stop()
    given = {
        "old generation": {"seen": LATER, **knows(pilot, "off", run.generation or 0)},
        "mode on": {"seen": LATER, **knows(pilot, "hash", run.stopped_generation or 0)},
        "not heard since": {"seen": timedelta()},
    }.get(case, {"seen": LATER})
    behind = process(**given)
    if case == "says nothing":
        type(behind).objects.filter(pk=behind.pk).update(report={})
    elif case == "no fence":
        owner_connection.execute("UPDATE observations_activation_run SET fenced = false")
    elif case == "still stores":
        journal.set_policy(owner_connection, pilot.world.workspace.pk)
    found = pilot.examine("D2")
    assert found.result == "fail"
    assert ("stored" in found.measured) == (case == "still stores")
    assert (pilot.run().state, alarms_of(pilot)) == ("shutdown_unverified", {activation.UNVERIFIED})
    if case == "still stores":
        assert found.measured["stored"] == 1
        journal.set_policy(owner_connection, pilot.world.workspace.pk, mode="off")
    owner_connection.execute("UPDATE observations_activation_run SET fenced = true")
    behind.delete()
    process(seen=LATER, **knows(pilot, "off", run.stopped_generation or 0))
    for item in ("D1", "D2"):
        assert pilot.examine(item).result == "pass"
    assert pilot.run().state == "shutdown_unverified"  # until a second person has seen it
    pilot.vouch("D2")
    assert (pilot.run().state, alarms_of(pilot)) == ("shutdown_verified", set())


@pytest.fixture
def as_owner(owner_connection, monkeypatch) -> None:
    """Migrations run as the owner of the tables, which this suite's own login is not."""
    monkeypatch.setattr(dropping, "connections", {"default": owner_connection})


def test_a_journal_with_rows_is_neither_emptied_nor_dropped(
    enabled: Scene, owner_connection, as_owner: None
) -> None:
    journal.record(owner_connection, enabled.world.principal, ago=timedelta(hours=2), hours=1)
    enabled.stop()
    enabled.give_all("D")
    row = enabled.examine("D4")
    assert (row.result, row.measured) == ("fail", {"records": 1})  # hidden, but not gone
    assert enabled.run().state == "shutdown_verified"
    for target in ("zero", "0003"):
        with pytest.raises(CommandError, match="still has records"):
            call_command("migrate", "observations", target, stdout=StringIO())
    with pytest.raises(CommandError, match="still has records"):
        call_command("migrate", "accounts", "zero", stdout=StringIO())
    owner_connection.execute("DELETE FROM observations_observation")
    assert enabled.examine("D4").result == "pass"
    assert enabled.run().state == "emptied"


def test_dropping_an_empty_journal_and_what_lies_apart_is_not_refused(
    enabled: Scene, owner_connection, as_owner: None
) -> None:
    first, newest = (
        MigrationLoader(None).disk_migrations["observations", name]
        for name in ("0001_records_texts_feedback_and_enrolments", "0011_row_policies_of_activation")
    )
    dropping.refuse_dropping([(first, True)], "default")
    journal.record(owner_connection, enabled.world.principal)
    dropping.refuse_dropping([(newest, True)], "default")
    dropping.refuse_dropping([(first, False)], "default")
    with pytest.raises(CommandError):
        dropping.refuse_dropping([(newest, True), (first, True)], "default")


@pytest.mark.parametrize("lost", ["schedule", "roles", "key", None])
def test_d3_needs_schedule_roles_and_the_keys_of_what_is_left(
    enabled: Scene, owner_connection, monkeypatch, settings, lost: str | None
) -> None:
    journal.record(owner_connection, enabled.world.principal)
    enabled.stop()
    fine = probes.Found(True, {"age_seconds": 1, "registered": True})
    monkeypatch.setattr(probes, "schedule", lambda asked: probes.Found(lost != "schedule", fine.values))
    monkeypatch.setattr(
        probes, "roles", lambda asked: probes.Found(lost != "roles", {"differences": int(lost == "roles")})
    )
    if lost == "key":
        settings.OBSERVATION_HMAC_KEYS = {"another": journal.KEY}
    found = enabled.examine("D3")
    assert found.result == ("fail" if lost else "pass")
    assert found.measured["keys_missing"] == int(lost == "key")


def test_due_dates_alarm_until_they_are_met(enabled: Scene, owner_connection, settings) -> None:
    def look() -> set[str]:
        tasks.due_dates.function()
        return alarms_of(enabled, unattended.DUE_SOURCE)

    assert look() == set()
    enabled.give("B10", observed_at=clock.now() - timedelta(days=181))
    assert look() == {unattended.STALE}
    enabled.give("B4", observed_at=clock.now() - timedelta(hours=1))  # of before enabling, and no more
    enabled.give("B10")
    owner_connection.execute(
        "INSERT INTO observations_export_record (id, workspace_id, candidates, envelope_sha256, latest_expires_at, "
        "custodian, location, owner_digest) SELECT gen_random_uuid(), %s, 1, %s, now() - make_interval(mins => 1), "
        "'owner', 'api', %s",
        [enabled.world.workspace.pk, "0" * 64, "0" * 64],
    )
    assert look() == {unattended.COPIES}
    owner_connection.execute("UPDATE observations_export_record SET attested_at = now()")
    assert look() == set()
    settings.RELEASE = "another"
    assert look() == {unattended.STALE}
