"""The restore gate: a copied database starts nothing and collects nothing until it is drained and opened by two."""

import getpass
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings as django_settings
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection

from apps.core.checks import UnsafeDatabase, refuse_unsafe_database
from apps.core.db.sessions import principal_session, staff_session
from apps.core.problems import Forbidden
from apps.observations import gate, status, tasks
from apps.observations.admission import Served, admit
from apps.observations.reporting import heartbeat_report
from apps.observations.services import erasure, restore
from apps.observations.standing import known
from apps.operations.erasure import certificates, lines
from tests.support import journal
from tests.support.api import Api, code_of
from tests.support.factories import World, make_principal, make_staff
from tests.support.journal import HOUR, record

pytestmark = pytest.mark.django_db(transaction=True)

STATE = "observations_maintenance_state"
IDENTITY = "system_identifier, database_oid"
PASSWORD = "a-long-password"


@pytest.fixture(autouse=True)
def gate_as_before(owner_connection) -> Iterator[None]:
    """The gate stands open for the test database again, whatever happened."""
    found = owner_connection.execute(f"SELECT {IDENTITY} FROM {STATE}").fetchone()
    with journal.reset_state(owner_connection):
        yield
    owner_connection.execute(
        f"UPDATE {STATE} SET system_identifier = %s, database_oid = %s, drained_at = NULL, "
        "drained_system_identifier = NULL, drained_database_oid = NULL",
        found,
    )


@pytest.fixture
def file() -> Path:
    path = Path(django_settings.ERASURE_FILE)
    path.touch(mode=0o600)
    return path


def copied(owner: Any) -> None:
    """What a copy looks like: the recorded identity is another one's, and the heartbeat is fresh."""
    owner.execute(
        f"UPDATE {STATE} SET database_oid = database_oid + 1, last_success_at = now(), last_drained_at = now()"
    )


def operators(world: World) -> tuple[Any, Any]:
    return make_staff(world.workspace, "operate_collection"), make_staff(
        world.workspace, "operate_collection"
    )


def open_by_two(world: World) -> None:
    first, second = operators(world)
    restore.open_gate(first=first, second=second, reason="restored from the backup of monday")


def refused_code(call: Any) -> str:
    with pytest.raises(restore.GateRefused) as refused:
        call()
    return refused.value.code


def test_processes_refuse_to_start_on_a_copied_database_and_name_the_commands(
    world: World, owner_connection
) -> None:
    refuse_unsafe_database()
    copied(owner_connection)
    with pytest.raises(UnsafeDatabase) as refused:
        refuse_unsafe_database()
    assert "journal_gate drain" in str(refused.value)
    assert "journal_gate open" in str(refused.value)


@pytest.mark.parametrize("column", ["system_identifier", "database_oid"])
def test_a_forgotten_identity_counts_as_another(world: World, owner_connection, column: str) -> None:
    assert gate.is_open()
    owner_connection.execute(f"UPDATE {STATE} SET {column} = NULL")
    assert not gate.is_open()


def test_a_running_process_closes_its_journal_at_its_next_heartbeat(on: World, owner_connection) -> None:
    api = Api(on.principal, "feedback", "export", superuser=on.superuser)
    assert known.standing(on.principal).journal.gate_open
    assert heartbeat_report()["gate_open"]
    copied(owner_connection)
    assert known.standing(on.principal).journal.gate_open  # remembered until the heartbeat
    assert not heartbeat_report()["gate_open"]
    assert not known.standing(on.principal).journal.gate_open
    answer = api.get("/v1/observations")
    assert (answer.status_code, code_of(answer)) == (503, "journal_closed")
    told = {"observation_id": str(UUID(int=1)), "hit_id": str(UUID(int=2)), "helpful": True}
    said = api.post("/v1/observation-feedback", told).json()
    assert said == {"recorded": False, "reason": "observation_unavailable"}
    assert admit(Served(on.principal, verified=True, traced=True, shared_only=True)) is None
    for path in ("/v1/observations/export", f"/v1/observations/{UUID(int=1)}"):
        answer = api.get(path)
        assert (answer.status_code, code_of(answer)) == (503, "journal_closed")
    assert "identity_changed" in status.read().reasons
    due = record(owner_connection, on.principal, ago=3 * HOUR, hours=1)
    assert tasks.expire.function() == {"records": 1, "texts": 0}
    assert rows(owner_connection, due) == []


def test_an_identity_that_cannot_be_read_counts_as_another(world: World, admin_connection) -> None:
    assert gate.is_open()
    admin_connection.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
    try:
        assert not gate.is_open()
        assert not heartbeat_report()["gate_open"]
    finally:
        admin_connection.execute("GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC")
    assert gate.is_open()


def test_open_before_drain_is_refused(world: World, owner_connection) -> None:
    copied(owner_connection)
    assert refused_code(lambda: open_by_two(world)) == "not_drained"
    assert not gate.is_open()


def test_drain_needs_a_whole_erasure_file(world: World, owner_connection, tmp_path: Path, file: Path) -> None:
    copied(owner_connection)
    with pytest.raises(CommandError, match="--erasures"):
        call_command("journal_gate", "drain")
    with pytest.raises(CommandError, match="Not drained"):
        call_command("journal_gate", "drain", erasures=tmp_path / "absent")
    file.write_text("{}\n")
    with pytest.raises(CommandError, match="Not drained"):
        call_command("journal_gate", "drain", erasures=file)
    assert refused_code(lambda: open_by_two(world)) == "not_drained"


def test_drained_and_opened_the_journal_is_as_it_was_but_for_what_must_not_come_back(
    on: World, owner_connection, file: Path
) -> None:
    other = make_principal(on.workspace)
    erased = record(owner_connection, on.principal, text="brought back")
    due = record(owner_connection, other, ago=3 * HOUR, hours=1)
    kept = record(owner_connection, other, text="theirs")
    with principal_session(on.principal):
        certificate = erasure.begin()
    assert erasure.run(certificate).status == "complete"
    line = lines.read()[0]
    restored(owner_connection, on, certificate)
    back = record(owner_connection, on.principal, text="brought back", observed_at=line.fence_at - HOUR)
    later = record(owner_connection, on.principal, observed_at=line.fence_at + (HOUR / 60))
    before = rows(owner_connection, kept, later)
    copied(owner_connection)

    assert restore.drain(file) == 1
    assert not gate.is_open()
    open_by_two(on)

    assert gate.is_open()
    refuse_unsafe_database()
    assert rows(owner_connection, kept, later) == before
    assert rows(owner_connection, due, back, erased) == []
    assert certificates.get(certificate).status == "complete"
    values = status.read().values
    assert (values["expired_records"], values["expired_texts"]) == (0, 0)
    assert restore.drain(file) == 0


def restored(owner: Any, world: World, certificate: UUID) -> None:
    """The copy was taken before the erasure: neither its certificate nor its fence is there."""
    owner.execute("DELETE FROM observations_erasure")
    owner.execute("DELETE FROM operations_erasurecertificate WHERE id = %s", [certificate])


def rows(owner: Any, *keys: UUID) -> list[Any]:
    sql = (
        "SELECT o::text, t::text FROM observations_observation o "
        "LEFT JOIN observations_observation_text t ON t.observation_id = o.id WHERE o.id = ANY (%s) ORDER BY o.id"
    )
    return owner.execute(sql, [list(keys)]).fetchall()  # type: ignore[no-any-return]


def test_a_drain_is_of_one_database_and_what_fell_due_since_needs_another(
    world: World, owner_connection, file: Path
) -> None:
    copied(owner_connection)
    restore.drain(file)
    key = record(owner_connection, world.principal, ago=3 * HOUR, hours=1)
    assert refused_code(lambda: open_by_two(world)) == "overdue_rows_left"
    owner_connection.execute("DELETE FROM observations_observation WHERE id = %s", [key])
    owner_connection.execute(f"UPDATE {STATE} SET drained_database_oid = drained_database_oid + 1")
    assert refused_code(lambda: open_by_two(world)) == "not_drained"


def test_roles_that_differ_keep_it_closed(
    world: World, owner_connection, admin_connection, file: Path
) -> None:
    copied(owner_connection)
    restore.drain(file)
    admin_connection.execute("GRANT TRUNCATE ON observations_observation TO memory_api")
    try:
        assert refused_code(lambda: open_by_two(world)) == "roles_differ"
    finally:
        admin_connection.execute("REVOKE TRUNCATE ON observations_observation FROM memory_api")


def test_two_persons_open_it_each_with_the_right(world: World, owner_connection, file: Path) -> None:
    copied(owner_connection)
    restore.drain(file)
    first, second = operators(world)
    for pair in ((first, first), (first, make_staff(world.workspace)), (make_staff(world.workspace), second)):
        with pytest.raises(Forbidden):
            restore.open_gate(first=pair[0], second=pair[1], reason="restored from the backup")
    # The database holds to it whatever a caller leaves out.
    for alone in (first.pk, None):
        with pytest.raises(DatabaseError), staff_session(first), connection.cursor() as cursor:
            cursor.execute("SELECT observations_gate_opened(%s)", [alone])
    assert not gate.is_open()
    restore.open_gate(first=first, second=second, reason="restored from the backup")
    assert gate.is_open()


def test_the_command_asks_both_for_their_passwords(
    world: World, owner_connection, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = operators(world)
    call_command("journal_gate", "close", stdout=StringIO())
    assert not gate.is_open()
    call_command("journal_gate", "drain", erasures=file, stdout=StringIO())
    asked = {
        "first": first.get_username(),
        "second": second.get_username(),
        "reason": "restored from the backup",
    }
    monkeypatch.setattr(getpass, "getpass", lambda prompt: "another-password")
    with pytest.raises(CommandError, match="belong together"):
        call_command("journal_gate", "open", **asked)
    monkeypatch.setattr(getpass, "getpass", lambda prompt: PASSWORD)
    out = StringIO()
    call_command("journal_gate", "open", stdout=out, **asked)
    assert "open" in out.getvalue()
    assert gate.is_open()


def test_closing_forgets_the_drain_too(world: World, owner_connection, file: Path) -> None:
    restore.drain(file)
    restore.close_gate()
    assert refused_code(lambda: open_by_two(world)) == "not_drained"


def test_a_certificate_that_only_the_file_knows_closes_the_gate(on: World, owner_connection) -> None:
    with principal_session(on.principal):
        certificate = erasure.begin()
    erasure.run(certificate)
    assert heartbeat_report()["gate_open"]
    restored(owner_connection, on, certificate)
    assert not heartbeat_report()["gate_open"]
    with pytest.raises(UnsafeDatabase):
        refuse_unsafe_database()


def test_a_half_written_line_closes_nothing(world: World, file: Path) -> None:
    file.write_text('{"certificate"')
    assert heartbeat_report()["gate_open"]
