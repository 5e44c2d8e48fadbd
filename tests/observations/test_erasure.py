"""Erasure by the owner: fence, line, batches, recount, certificate; and again after a restore."""

from typing import Any
from uuid import UUID

import pytest
from django.db import DatabaseError

from apps.core.db.sessions import principal_session
from apps.observations.services import erasure
from apps.operations.erasure import certificates, lines
from apps.operations.erasure.models import ErasureCertificate
from apps.operations.erasure.restore import replay_file
from apps.operations.models import Alarm
from tests.support.api import Api, code_of
from tests.support.factories import World, make_principal
from tests.support.journal import HOUR, count, feedback, record

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def api(on: World) -> Api:
    return Api(on.principal, "feedback", "export", superuser=on.superuser)


@pytest.fixture
def other(on: World) -> Any:
    return make_principal(on.workspace)


def fill(owner: Any, principal: Any, number: int = 3) -> list[UUID]:
    """Rows of all sorts: with text and feedback, and one that is hidden already."""
    keys = [record(owner, principal, text=f"q{n}") for n in range(number)]
    feedback(owner, principal, keys[0])
    return [*keys, record(owner, principal, ago=3 * HOUR, hours=1)]


def rows_of(owner: Any, principal: Any) -> list[Any]:
    sql = "SELECT {t}::text FROM observations_{t} {t} WHERE principal_id = %s ORDER BY 1"
    tables = ("observation", "observation_text", "observation_feedback", "enrolment")
    return [owner.execute(sql.format(t=table), [principal.principal_id]).fetchall() for table in tables]


def erase(principal: Any, **more: Any) -> ErasureCertificate:
    with principal_session(principal):
        begun = erasure.begin(**more)
    return erasure.run(begun)


def by_table(certificate: ErasureCertificate) -> dict[str, tuple[int, int, int]]:
    return {
        each["table"].removeprefix("observations_"): (each["found"], each["deleted"], each["remaining"])
        for each in certificate.tables
    }


def test_everything_of_the_owner_goes_and_nothing_of_another(
    on: World, other, owner_connection, monkeypatch
) -> None:
    monkeypatch.setattr(erasure, "BATCH", 2)
    fill(owner_connection, on.principal, 5)
    fill(owner_connection, other)
    theirs = rows_of(owner_connection, other)
    certificate = erase(on.principal)
    assert count(owner_connection, "observation", on.principal) == 0
    assert count(owner_connection, "observation_text", on.principal) == 0
    assert count(owner_connection, "observation_feedback", on.principal) == 0
    assert rows_of(owner_connection, other) == theirs
    assert (certificate.status, certificate.scope) == ("complete", "journal")
    assert by_table(certificate) == {
        "observation": (6, 6, 0),
        "observation_text": (5, 5, 0),
        "observation_feedback": (1, 1, 0),
    }
    assert certificate.checksum == certificates.checksum(certificate)
    assert certificate.audit_entry_id is not None
    assert certificate.completed_at is not None
    (line,) = lines.read()
    assert (line.certificate, line.scope, line.withdraw) == (certificate.pk, "journal", False)
    assert line.fence_at == certificate.fence_at


def test_certificates_hold_no_text_no_fingerprint_and_no_record_id(on: World, owner_connection) -> None:
    keys = fill(owner_connection, on.principal)
    certificate = erase(on.principal)
    told = repr(certificates.document(certificate))
    for secret in (*map(str, keys), str(on.principal.principal_id), "q0", "0" * 64):
        assert secret not in told


def test_erasing_nothing_is_certified_with_zeros(on: World) -> None:
    certificate = erase(on.principal)
    assert certificate.status == "complete"
    assert set(by_table(certificate).values()) == {(0, 0, 0)}


def test_one_record_goes_alone(on: World, api: Api, owner_connection) -> None:
    first, *rest = fill(owner_connection, on.principal)
    answer = api.delete(f"/v1/observations/{first}")
    assert answer.status_code == 202
    assert answer.json()["status"] == "running"
    certificate = erasure.run(UUID(answer.json()["id"]))
    assert (certificate.status, certificate.scope) == ("complete", "one")
    left = owner_connection.execute("SELECT id FROM observations_observation").fetchall()
    assert {key for (key,) in left} == set(rest)
    (line,) = lines.read()
    assert (line.object_type, line.object_id) == ("observations.observation", first)
    kept = owner_connection.execute("SELECT observation_id FROM observations_erasure").fetchall()
    assert kept == [(None,)]


def test_foreign_ids_are_answered_as_unknown_ones(on: World, api: Api, other, owner_connection) -> None:
    theirs = record(owner_connection, other)
    answers = [api.delete(f"/v1/observations/{key}") for key in (theirs, other.principal_id)]
    assert {answer.status_code for answer in answers} == {404}
    assert answers[0].content == answers[1].content
    assert code_of(answers[0]) == "unknown_observation"
    assert ErasureCertificate.objects.count() == 0


def test_an_interrupted_erasure_is_incomplete_then_resumed(on: World, owner_connection, monkeypatch) -> None:
    monkeypatch.setattr(erasure, "BATCH", 1)
    fill(owner_connection, on.principal)
    with principal_session(on.principal):
        begun = erasure.begin()
    real, calls = erasure._erase_batch, []

    def interrupted(*args: Any) -> int:
        calls.append(1)
        if len(calls) == 3:
            raise DatabaseError
        return real(*args)

    monkeypatch.setattr(erasure, "_erase_batch", interrupted)
    certificate = erasure.run(begun)
    assert (certificate.status, certificate.reason_code) == ("incomplete", "delete_failed")
    assert by_table(certificate)["observation"] == (4, 2, 2)
    alarm = Alarm.objects.filter(source="operations.erasure", resolved_at=None)
    assert alarm.count() == 1
    assert erasure.resume() == {"complete": 1, "incomplete": 0}
    certificate = certificates.get(begun)
    assert certificate.status == "complete"
    assert by_table(certificate)["observation"] == (4, 4, 0)
    assert alarm.count() == 0
    assert erasure.resume() == {"complete": 0, "incomplete": 0}


def test_without_its_line_an_erasure_is_not_complete(on: World, owner_connection, settings, tmp_path) -> None:
    fill(owner_connection, on.principal)
    settings.ERASURE_FILE = tmp_path / "nowhere" / "erasures.jsonl"
    certificate = erase(on.principal)
    assert (certificate.status, certificate.reason_code) == ("incomplete", "line_not_written")
    assert count(owner_connection, "observation", on.principal) == 0
    settings.ERASURE_FILE = tmp_path / "erasures.jsonl"
    assert erasure.resume() == {"complete": 1, "incomplete": 0}


def test_a_second_call_returns_the_erasure_that_is_under_way(on: World, owner_connection) -> None:
    with principal_session(on.principal):
        first = erasure.begin()
    with principal_session(on.principal):
        assert erasure.begin() == first


def test_withdrawal_goes_with_it_when_asked_for(on: World, api: Api, owner_connection) -> None:
    plan = api.post("/v1/observations/erasure", {})
    assert plan.status_code == 200
    assert plan.json()["observations"] == 0
    answer = api.post("/v1/observations/erasure", {"confirm": "erase", "withdraw": True})
    assert answer.status_code == 202
    assert answer["Location"].endswith(f"/v1/observations/erasure-certificates/{answer.json()['id']}")
    assert api.get("/v1/observations/enrolment").json()["enrolled"] is False
    erasure.run(UUID(answer.json()["id"]))
    shown = api.get("/v1/observations/erasure-certificates").json()["certificates"]
    assert [each["status"] for each in shown] == ["complete"]
    one = api.get(f"/v1/observations/erasure-certificates/{shown[0]['id']}")
    assert one.json() == shown[0]
    stranger = Api(make_principal(on.workspace), "feedback", superuser=on.superuser)
    assert stranger.get(f"/v1/observations/erasure-certificates/{shown[0]['id']}").status_code == 404
    assert stranger.get("/v1/observations/erasure-certificates").json()["certificates"] == []


def test_outstanding_copies_are_on_the_certificate(on: World, api: Api, owner_connection) -> None:
    record(owner_connection, on.principal, text="t")
    api.get("/v1/observations/export")
    certificate = erase(on.principal)
    (copy,) = certificate.export_copies
    assert copy["custodian_class"] == "owner"
    assert copy["expires_at"].endswith("Z")


def test_after_a_restore_erased_rows_go_again_and_later_ones_stay(on: World, other, owner_connection) -> None:
    fill(owner_connection, other)
    certificate = erase(on.principal, withdraw=True)
    # A backup of before is restored: rows and enrolment are back, the certificate is not.
    owner_connection.execute("DELETE FROM operations_erasurecertificate")
    owner_connection.execute("DELETE FROM observations_enrolment")
    owner_connection.execute(
        "INSERT INTO observations_enrolment (id, workspace_id, principal_id, purpose, consent_version, enrolled_at) "
        "VALUES (gen_random_uuid(), %s, %s, 'p', 'c', now() - interval '1 day')",
        [on.workspace.pk, on.principal.principal_id],
    )
    old = record(owner_connection, on.principal, text="erased once")
    later = record(
        owner_connection, on.principal, observed_at=certificate.fence_at + (HOUR / 60), text="later"
    )
    theirs = rows_of(owner_connection, other)
    assert replay_file() == [certificate.pk]
    left = owner_connection.execute(
        "SELECT id FROM observations_observation WHERE principal_id = %s", [on.principal.principal_id]
    ).fetchall()
    assert left == [(later,)]
    assert old != later
    enrolled = owner_connection.execute(
        "SELECT withdrawn_at = %s, erased_before = %s FROM observations_enrolment",
        [certificate.fence_at, certificate.fence_at],
    ).fetchall()
    assert enrolled == [(True, True)]
    again = certificates.get(certificate.pk)
    assert (again.status, again.actor, again.fence_at) == ("complete", "replay", certificate.fence_at)
    assert rows_of(owner_connection, other) == theirs
    assert replay_file() == []


def test_certificates_come_back_though_the_principal_did_not(on: World, owner_connection) -> None:
    line = lines.ErasureLine(
        certificate=UUID(int=7),
        fence_at=certificates_fence(owner_connection),
        scope="journal",
        workspace=on.workspace.pk,
        principal=UUID(int=8),
    )
    lines.append(line)
    assert replay_file() == [UUID(int=7)]
    assert certificates.get(UUID(int=7)).status == "complete"


def certificates_fence(owner: Any) -> Any:
    return owner.execute("SELECT now()").fetchone()[0]


def test_an_erasure_that_its_owner_overtook_is_completed(on: World, owner_connection) -> None:
    from apps.operations.erasure import runs, services

    fill(owner_connection, on.principal)
    with principal_session(on.principal):
        overtaken = erasure.begin()
    with principal_session(on.principal):
        begun = services.begin()
    assert runs.run(begun).status == "complete"
    assert certificates.get(overtaken).status == "running"
    assert erasure.resume() == {"complete": 1, "incomplete": 0}
    assert certificates.get(overtaken).status == "complete"


def test_erasure_of_the_whole_principal_takes_the_journal_with_it(on: World, owner_connection) -> None:
    from apps.operations.erasure import runs, services

    fill(owner_connection, on.principal)
    erase(on.principal)
    fill(owner_connection, on.principal)
    with principal_session(on.principal):
        begun = services.begin()
    assert runs.run(begun).status == "complete"
    for table in ("observation", "observation_text", "observation_feedback", "enrolment", "erasure"):
        assert count(owner_connection, table, on.principal) == 0
