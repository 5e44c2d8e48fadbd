"""Erasure of everything a principal owns: plan, fence, file, batches, holds, recount, certificate."""

import json
import os
import stat
import threading
from uuid import uuid4

import psycopg
import pytest
from django.db import connection
from django.test import Client, override_settings

from apps.accounts import selectors
from apps.accounts import services as accounts
from apps.accounts.models import ApiToken, Principal
from apps.core import canonical
from apps.core.db.sessions import principal_session, staff_session
from apps.core.models import IdempotencyKey
from apps.core.problems import Forbidden, NotFound
from apps.operations import holds
from apps.operations.erasure import certificates, lines, restore, runs, services
from apps.operations.erasure.models import ErasureCertificate, ErasureRun
from apps.operations.models import Alarm
from apps.operations.tasks import prune
from tests.support.factories import make_principal, make_staff, make_token, make_world

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def sent(monkeypatch, tmp_path):
    """What was sent to the worker; the erasure file of the test."""
    from apps.operations.erasure.tasks import erase

    ids = []
    monkeypatch.setattr(erase, "delay", ids.append)
    with override_settings(ERASURE_FILE=tmp_path / "erasures.jsonl"):
        yield ids


def write_keys(principal, count: int) -> None:
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"]) as owner:
        owner.execute(
            "INSERT INTO core_idempotencykey (id, workspace_id, principal_id, key, tool, payload_sha256, "
            "receipt_id) "
            "SELECT gen_random_uuid(), %s, %s, 'k' || n || gen_random_uuid(), 'test', sha256('a'), "
            "gen_random_uuid() FROM generate_series(1, %s) n",
            [principal.workspace_id, principal.principal_id, count],
        )


def rows_of(principal) -> dict[str, int]:
    with psycopg.connect(os.environ["DATABASE_ADMIN_URL"]) as admin:
        found = {}
        tables = admin.execute("SELECT name, owner_column FROM operations_erasabletable").fetchall()
        for table, column in tables:
            query = f'SELECT count(*) FROM "{table}" WHERE {column} = %s'
            found[table] = admin.execute(query, [principal.principal_id]).fetchone()[0]
        return {table: rows for table, rows in found.items() if rows}


def api(secret: str) -> Client:
    return Client(headers={"Authorization": f"Bearer {secret}"})


def ask(client: Client, **body):
    return client.post("/v1/me/erasure", body, "application/json")


def test_without_confirm_the_answer_is_the_plan_and_nothing_happens(sent) -> None:
    world = make_world()
    secret = make_token(world.principal, "erase")
    write_keys(world.principal, 3)
    before = rows_of(world.principal)
    answer = ask(api(secret))
    assert answer.status_code == 200
    plan = answer.json()
    assert {table["table"]: table["rows"] for table in plan["tables"]} == before
    assert plan["total_rows"] == 5
    assert plan["tables"][-1] == {"table": "accounts_principal", "rows": 1}
    assert plan["held"] is False
    assert rows_of(world.principal) == before
    assert not sent
    assert not ErasureCertificate.objects.exists()


@pytest.mark.parametrize(
    "body", [{"confirm": "yes"}, {"confirm": True}, {"confirm": "erase", "who": "all"}, []]
)
def test_a_body_that_is_not_meant_is_refused(body) -> None:
    world = make_world()
    client = api(make_token(world.principal, "erase"))
    answer = client.post("/v1/me/erasure", json.dumps(body), "application/json")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
    assert not ErasureCertificate.objects.exists()


def test_everything_goes_in_batches_and_others_keep_theirs(sent, monkeypatch) -> None:
    monkeypatch.setattr(runs, "BATCH", 100)
    world = make_world()
    other = make_principal(world.workspace)
    secret = make_token(world.principal, "erase", "search")
    make_token(other, "search")
    write_keys(world.principal, 250)
    write_keys(other, 7)
    untouched = rows_of(other)
    found = rows_of(world.principal)
    answer = ask(api(secret), confirm="erase")
    assert answer.status_code == 202
    begun = answer.json()
    assert begun["status"] == "running"
    assert [str(key) for key in sent] == [begun["id"]]
    # The fence: from here on the principal is shut out.
    assert api(secret).get("/v1/me").status_code == 401
    assert rows_of(world.principal) == found
    runs.run(sent[0])
    assert rows_of(world.principal) == {}
    assert rows_of(other) == untouched
    done = Client().get(answer["Location"])
    assert done.status_code == 200
    certificate = done.json()
    assert certificate["status"] == "complete"
    assert {t["table"]: t["found"] for t in certificate["tables"]} == found
    assert all(t["deleted"] == t["found"] and t["remaining"] == 0 for t in certificate["tables"])
    sealed = certificate.pop("checksum")
    assert sealed == canonical.checksum(certificate)
    assert certificate["actor"] == "owner"
    text = json.dumps(certificate)
    assert str(world.principal.principal_id) not in text
    assert not ErasureRun.objects.exists()
    assert api(secret).get("/v1/me").status_code == 401


def test_a_certificate_is_read_without_a_credential_and_an_unknown_one_is_404() -> None:
    answer = Client().get(f"/v1/erasures/{uuid4()}")
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_erasure")


def test_the_line_is_written_once_the_fence_is_committed(sent) -> None:
    world = make_world()
    with principal_session(world.principal):
        begun = services.begin()
        assert not lines.path().exists()
    [line] = lines.read()
    assert (line.certificate, line.principal, line.workspace, line.scope) == (
        begun,
        world.principal.principal_id,
        world.workspace.pk,
        "all",
    )
    assert line.fence_at == ErasureCertificate.objects.get().fence_at
    assert stat.S_IMODE(lines.path().stat().st_mode) == 0o600
    runs.run(begun)
    assert len(lines.read()) == 1


def test_without_its_line_a_certificate_stays_incomplete(sent, tmp_path) -> None:
    world = make_world()
    write_keys(world.principal, 3)
    with override_settings(ERASURE_FILE=tmp_path / "absent" / "erasures.jsonl"):
        with principal_session(world.principal):
            begun = services.begin()
        certificate = runs.run(begun)
        assert (certificate.status, certificate.reason_code) == ("incomplete", "line_not_written")
        assert certificate.checksum == ""
        assert rows_of(world.principal) == {}
        assert Alarm.objects.get(resolved_at=None).reason == "line_not_written"
        (tmp_path / "absent").mkdir()
        assert runs.resume() == {"complete": 1, "incomplete": 0}
    done = ErasureCertificate.objects.get()
    assert done.status == "complete"
    assert {t["table"]: t["deleted"] for t in done.tables}["core_idempotencykey"] == 3
    assert not Alarm.objects.filter(resolved_at=None).exists()


def test_a_damaged_file_is_not_written_to(sent) -> None:
    world = make_world()
    lines.path().write_text('{"certificate": "cut')
    with principal_session(world.principal):
        begun = services.begin()
    assert runs.run(begun).reason_code == "line_not_written"
    assert lines.path().read_text() == '{"certificate": "cut'


@pytest.mark.parametrize(
    "content",
    [b"{}\n", b"not json\n", b'{"checksum": "x"}\n', b"\n", b"[1]\n", b'"x"\n', b"3\n", b"{} "],
)
def test_a_damaged_line_is_named(content, tmp_path) -> None:
    file = tmp_path / "damaged.jsonl"
    file.write_bytes(content)
    with pytest.raises(lines.DamagedLine) as raised:
        lines.read(file)
    assert raised.value.number == 1


def test_an_interrupted_erasure_is_resumed(sent, monkeypatch) -> None:
    monkeypatch.setattr(runs, "BATCH", 10)
    world = make_world()
    write_keys(world.principal, 25)
    found = rows_of(world.principal)
    with principal_session(world.principal):
        begun = services.begin()
    real, calls = runs._delete_batch, []

    def dies(identity, rule):
        if rule.table == "core_idempotencykey":
            calls.append(1)
            if len(calls) == 2:
                raise SystemExit
        return real(identity, rule)

    monkeypatch.setattr(runs, "_delete_batch", dies)
    with pytest.raises(SystemExit):
        runs.run(begun)
    assert rows_of(world.principal)["core_idempotencykey"] == 15
    assert Client().get(f"/v1/erasures/{begun}").json()["status"] == "running"
    monkeypatch.setattr(runs, "_delete_batch", real)
    assert runs.resume() == {"complete": 1, "incomplete": 0}
    tables = {t["table"]: (t["found"], t["deleted"]) for t in certificates.get(begun).tables}
    assert tables == {table: (rows, rows) for table, rows in found.items()}


def test_a_write_in_flight_at_the_fence_is_not_there_afterwards(sent) -> None:
    world = make_world()
    written, go_on = threading.Event(), threading.Event()

    def write() -> None:
        try:
            with principal_session(world.principal):
                IdempotencyKey.objects.create(
                    workspace_id=world.workspace.pk,
                    principal_id=world.principal.principal_id,
                    key="late",
                    tool="test",
                    payload_sha256=b"a" * 32,
                    receipt_id=uuid4(),
                )
                written.set()
                go_on.wait(10)
        finally:
            connection.close()

    thread = threading.Thread(target=write)
    thread.start()
    assert written.wait(10)

    def erase() -> None:
        try:
            with principal_session(world.principal):
                services.begin()
        finally:
            connection.close()

    fence = threading.Thread(target=erase)
    fence.start()
    fence.join(0.5)
    assert fence.is_alive(), "the fence waits for the write that is under way"
    go_on.set()
    thread.join(10)
    fence.join(10)
    assert runs.run(sent[0]).status == "complete"
    assert rows_of(world.principal) == {}


def test_a_session_that_outlives_the_fence_leaves_nothing(sent, monkeypatch) -> None:
    """A session opened before the fence may still commit a row between two batches; the next pass takes it."""
    world = make_world()
    with principal_session(world.principal):
        begun = services.begin()
    real, late = runs._delete_batch, []

    def with_a_late_write(identity, rule):
        if rule.table == "accounts_principal" and not late:
            late.append(1)
            write_keys(world.principal, 2)
        return real(identity, rule)

    monkeypatch.setattr(runs, "_delete_batch", with_a_late_write)
    assert runs.run(begun).status == "complete"
    assert rows_of(world.principal) == {}
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        write_keys(world.principal, 1)


def hold(world, kind: str, object_id):
    reviewer = make_staff(world.workspace, "review_retention")
    holds.register_kind(holds.HoldKind(kind, "a test object", locate=lambda _: world.workspace.pk))
    with staff_session(reviewer):
        return holds.place(
            workspace_id=world.workspace.pk, reference="case", reason="asked for", items=[(kind, object_id)]
        )


@pytest.fixture
def _kinds():
    yield
    for name in ("accounts.apitoken", "test.principal"):
        holds.unregister_kind(name)


@pytest.mark.usefixtures("_kinds")
def test_a_hold_on_the_principal_or_a_row_stops_it(sent) -> None:
    world = make_world()
    secret = make_token(world.principal, "erase")
    placed = hold(world, "test.principal", world.principal.principal_id)
    assert ask(api(secret)).json()["held"] is True
    refused = ask(api(secret), confirm="erase")
    assert (refused.status_code, refused.json()["code"]) == (409, "legal_hold")
    assert api(secret).get("/v1/me").status_code == 200
    with staff_session(make_staff(world.workspace, "review_retention")):
        holds.release(hold_id=placed.pk, reason="over")
    begun = ask(api(secret), confirm="erase").json()["id"]
    token = make_held_token(world)
    held = hold(world, "accounts.apitoken", token)
    stopped = runs.run(sent[0])
    assert (stopped.status, stopped.reason_code) == ("incomplete", "legal_hold")
    assert "accounts_apitoken" in rows_of(world.principal)
    assert Alarm.objects.get(resolved_at=None).reason == "legal_hold"
    assert runs.resume() == {"complete": 0, "incomplete": 1}
    with staff_session(make_staff(world.workspace, "review_retention")):
        holds.release(hold_id=held.pk, reason="over")
    assert runs.resume() == {"complete": 1, "incomplete": 0}
    assert Client().get(f"/v1/erasures/{begun}").json()["status"] == "complete"


def make_held_token(world):
    with staff_session(world.superuser):
        return ApiToken.objects.defer("secret_sha256").get(principal=world.principal.principal_id).pk


@pytest.mark.usefixtures("_kinds")
def test_a_hold_on_somebody_elses_row_stops_nothing(sent) -> None:
    world = make_world()
    other = make_principal(world.workspace)
    hold(world, "test.principal", other.principal_id)
    with principal_session(world.principal):
        begun = services.begin()
    assert runs.run(begun).status == "complete"


def test_holds_that_cannot_be_read_stop_it(sent, monkeypatch) -> None:
    world = make_world()
    with principal_session(world.principal):
        begun = services.begin()

    def fails():
        raise holds.HoldCheckFailed

    monkeypatch.setattr(services, "held_kinds", fails)
    stopped = runs.run(begun)
    assert (stopped.status, stopped.reason_code) == ("incomplete", "hold_check_failed")
    assert rows_of(world.principal)


def test_rows_that_are_left_never_make_a_complete_certificate(sent, monkeypatch) -> None:
    world = make_world()
    write_keys(world.principal, 2)
    with principal_session(world.principal):
        begun = services.begin()
    monkeypatch.setattr(runs, "_delete", lambda identity: None)
    left = runs.run(begun)
    assert (left.status, left.reason_code, left.completed_at) == ("incomplete", "rows_remaining", None)
    assert {"table": "core_idempotencykey", "found": 2, "deleted": 0, "remaining": 2} in left.tables


def test_staff_erase_with_review_retention_and_a_reason(sent) -> None:
    world, elsewhere = make_world(), make_world()
    target = world.principal.principal_id
    reviewer = make_staff(world.workspace, groups=("Retention reviewer",))
    curator = make_staff(world.workspace, groups=("Curator",))
    stranger = make_staff(elsewhere.workspace, groups=("Retention reviewer",))
    for user in (curator, stranger):
        with staff_session(user):
            with pytest.raises(NotFound):
                services.plan_for(target)
            with pytest.raises(NotFound):
                services.erase_principal(principal_id=target, reason="asked by letter")
    with staff_session(reviewer):
        assert services.plan_for(target).total_rows == 1
        begun = services.erase_principal(principal_id=target, reason="asked by letter")
        assert services.erase_principal(principal_id=target, reason="again") == begun
    done = runs.run(begun)
    assert (done.status, done.actor) == ("complete", "staff")
    with staff_session(reviewer):
        assert ErasureCertificate.objects.get().audit_entry_id is not None
        assert not Principal.objects.filter(pk=target).exists()
        with pytest.raises(NotFound):
            services.erase_principal(principal_id=target, reason="again")
    with staff_session(stranger):
        assert not ErasureCertificate.objects.exists()


def test_the_shared_principal_is_not_one_persons_to_erase(sent) -> None:
    world = make_world()
    shared = accounts.enter_principal(workspace=world.workspace.pk, subject="shared")
    with principal_session(shared), pytest.raises(services.SharedPrincipal):
        services.begin()
    answer = ask(api(make_token(shared, "erase")), confirm="erase")
    assert (answer.status_code, answer.json()["code"]) == (409, "shared_principal")


def test_without_its_scope_nothing_is_planned_or_erased() -> None:
    world = make_world()
    client = api(make_token(world.principal, "search", "export"))
    assert ask(client).status_code == ask(client, confirm="erase").status_code == 403


def test_erasing_nothing_gives_a_certificate_of_the_principal_alone(sent) -> None:
    world = make_world()
    with principal_session(world.principal):
        begun = services.begin()
    assert runs.run(begun).tables == [
        {"table": "accounts_principal", "found": 1, "deleted": 1, "remaining": 0}
    ]
    assert runs.run(begun).status == "complete"


def test_a_complete_certificate_does_not_change(sent) -> None:
    world = make_world()
    with principal_session(world.principal):
        begun = services.begin()
    runs.run(begun)
    with pytest.raises(Exception, match="certificate_is_fixed"):
        ErasureCertificate.objects.filter(pk=begun).update(status="running")


@pytest.mark.parametrize(("days", "stays"), [(1825, True), (1827, False)])
def test_a_certificate_is_kept_1826_days(sent, admin_connection, days, stays) -> None:
    world = make_world()
    with principal_session(world.principal):
        begun = services.begin()
    runs.run(begun)
    admin_connection.execute("ALTER TABLE operations_erasurecertificate DISABLE TRIGGER USER")
    admin_connection.execute(
        "UPDATE operations_erasurecertificate SET completed_at = now() - make_interval(days => %s)", [days]
    )
    admin_connection.execute("ALTER TABLE operations_erasurecertificate ENABLE TRIGGER USER")
    prune.function()
    kept = admin_connection.execute("SELECT count(*) FROM operations_erasurecertificate").fetchone()[0]
    assert bool(kept) is stays


def test_no_batch_without_a_fence_and_no_table_that_is_not_listed(sent) -> None:
    world = make_world()
    for table in ("core_idempotencykey", "auth_user"):
        with pytest.raises(Exception, match=r"erasure|erasable"), principal_session(world.principal):
            with connection.cursor() as cursor:
                cursor.execute("SELECT operations_erase_batch(%s, 10)", [table])
    with principal_session(world.principal):
        services.begin()
    with pytest.raises(Exception, match="erasable"), principal_session(world.principal):
        with connection.cursor() as cursor:
            cursor.execute("SELECT operations_erase_batch('auth_user', 10)")


def test_after_a_restore_the_file_is_replayed(sent, admin_connection) -> None:
    world = make_world()
    other = make_principal(world.workspace)
    write_keys(world.principal, 3)
    write_keys(other, 2)
    with principal_session(world.principal):
        begun = services.begin()
    fence = certificates.get(begun).fence_at
    # The restored copy was made before: no certificate, no run, the principal as it was.
    admin_connection.execute("DELETE FROM operations_erasurerun")
    admin_connection.execute("DELETE FROM operations_erasurecertificate")
    admin_connection.execute("UPDATE accounts_principal SET disabled_at = NULL")
    assert restore.missing() == [begun]
    untouched = rows_of(other)
    assert restore.replay_file() == [begun]
    assert rows_of(world.principal) == {}
    assert rows_of(other) == untouched
    certificate = certificates.get(begun)
    assert (certificate.status, certificate.actor, certificate.fence_at) == ("complete", "replay", fence)
    assert restore.replay_file() == []
    assert restore.missing() == []


def test_a_person_who_comes_back_is_somebody_new(sent) -> None:
    world = make_world()
    with principal_session(world.principal):
        begun = services.begin()
    with staff_session(world.superuser):
        subject = selectors.get_principal(world.principal.principal_id).subject
    with pytest.raises(NotFound):
        accounts.enter_principal(workspace=world.workspace.pk, subject=subject)
    runs.run(begun)
    again = accounts.enter_principal(workspace=world.workspace.pk, subject=subject)
    assert again.principal_id != world.principal.principal_id


def test_only_superusers_and_owners_reach_the_services(sent) -> None:
    world = make_world()
    with staff_session(world.superuser), pytest.raises((Forbidden, NotFound)):
        services.erase_principal(principal_id=world.principal.principal_id, reason="asked by letter")


def test_a_memory_with_pages_traces_and_credits_goes_whole(sent, monkeypatch) -> None:
    """Every table that a principal fills by using the platform, with small batches."""
    monkeypatch.setattr(runs, "BATCH", 3)
    world = make_world()
    other = make_principal(world.workspace)
    for principal in (world.principal, other):
        use_everything(principal)
    before, untouched = rows_of(world.principal), rows_of(other)
    assert {
        "graph_node",
        "graph_posting",
        "graph_term",
        "traces_trace",
        "traces_source",
        "traces_use",
        "feedback_credit",
        "core_idempotencykey",
    } <= before.keys()
    with principal_session(world.principal):
        begun = services.begin()
    certificate = runs.run(begun)
    assert rows_of(world.principal) == {}
    assert (certificate.status, certificate.reason_code) == ("complete", "")
    assert {t["table"]: t["deleted"] for t in certificate.tables} == before
    assert rows_of(other) == untouched
    assert found_again(other)


def use_everything(principal) -> None:
    from tests.support.graph_axis import expanded, learn
    from tests.support.library import CHAIN, store

    store(principal, *CHAIN)
    learn(principal, expanded(principal))


def found_again(principal) -> bool:
    from tests.support.graph_axis import expanded

    return bool(expanded(principal)["results"])
