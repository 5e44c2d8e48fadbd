"""Exports: own shared queries with live text, one a distinct query, recorded without ids and texts."""

import json
import os
import stat
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.core import canonical
from apps.core.db.sessions import principal_session
from apps.observations.selectors.exports import candidates
from apps.observations.services import exports
from tests.support import journal
from tests.support.api import Api, code_of
from tests.support.factories import World, make_principal, make_token
from tests.support.journal import HOUR, feedback, record

pytestmark = pytest.mark.django_db(transaction=True)

TOKEN = "OBSERVATION_EXPORT_TOKEN"
MINUTE = timedelta(minutes=1)


@pytest.fixture
def token(world: World, monkeypatch) -> str:
    secret = make_token(world.principal, "export", superuser=world.superuser)
    monkeypatch.setenv(TOKEN, secret)
    return secret


def own(world: World) -> list[dict[str, Any]]:
    with principal_session(world.principal):
        return candidates()


def test_own_shared_live_texts_alone_are_exported(world: World, owner_connection) -> None:
    owner, me = owner_connection, world.principal
    kept = record(owner, me, text="billing rollback", hours=48, text_life=24 * HOUR)
    record(owner, me, text="gone", ago=3 * HOUR, text_life=HOUR)
    record(owner, me, text="past", ago=3 * HOUR, hours=2)
    record(owner, me)
    record(owner, me, corpus="private", disposition="private")
    record(owner, make_principal(world.workspace), text="theirs")
    feedback(owner, me, kept)
    (found,) = own(world)
    assert set(found) == {"id", "query", "observedAt", "expires_at", "snapshot", "feedback"}
    assert (found["id"], found["query"]) == (str(kept), "billing rollback")
    (deadline,) = owner.execute(
        "SELECT to_char(text_expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') "
        "FROM observations_observation_text WHERE observation_id = %s",
        [kept],
    ).fetchone()
    assert found["expires_at"] == deadline
    assert [each["helpful"] for each in found["feedback"]] == [True]
    owner.execute("UPDATE observations_observation_feedback SET withdrawn_at = now()")
    assert own(world)[0]["feedback"] == []


def test_the_latest_of_each_distinct_query_whatever_its_key(world: World, owner_connection) -> None:
    owner, me = owner_connection, world.principal
    record(owner, me, text="billing", ago=3 * HOUR)
    newest = record(owner, me, text="\ufeff billing\u3000", ago=HOUR, key_id="key-2")
    other = record(owner, me, text="Billing", ago=2 * HOUR)
    composed = record(owner, me, text="caf\u00e9", ago=MINUTE)
    record(owner, me, text="cafe\u0301", ago=5 * HOUR)
    control = record(owner, me, text="billing\u0085", ago=4 * HOUR)
    assert [each["id"] for each in own(world)] == [str(key) for key in (composed, newest, other, control)]


def test_the_thousand_newest_of_more(world: World, owner_connection) -> None:
    me = world.principal
    owner_connection.execute(
        "WITH record AS (INSERT INTO observations_observation (id, workspace_id, principal_id, corpus, observed_at, "
        "record_expires_at, query_fingerprint, fingerprint_key_id, fingerprint_version, text_disposition, purpose, "
        "consent_version, snapshot) SELECT gen_random_uuid(), %s, %s, 'shared', "
        "statement_timestamp() - n * interval '1 second', statement_timestamp() + interval '1 day', repeat('0', 64), "
        "'k', 'v', 'retained', 'p', 'c', '{\"hits\": []}' FROM generate_series(1, 1200) n "
        "RETURNING id, workspace_id, principal_id, observed_at, text_disposition) "
        "INSERT INTO observations_observation_text SELECT id, observed_at, text_disposition, "
        "'query ' || row_number() OVER (ORDER BY observed_at DESC), statement_timestamp() + interval '1 day', "
        "principal_id, workspace_id FROM record".replace(
            "observations_observation_text SELECT",
            "observations_observation_text (observation_id, observed_at, text_disposition, query_text, "
            "text_expires_at, principal_id, workspace_id) SELECT",
        ),
        [me.workspace_id, me.principal_id],
    )
    found = own(world)
    assert [each["query"] for each in found] == [f"query {number}" for number in range(1, 1001)]


def test_the_endpoint_needs_its_scope_and_records_no_id(world: World, owner_connection) -> None:
    key = record(owner_connection, world.principal, text="billing rollback")
    refused = Api(world.principal, "feedback", superuser=world.superuser).get("/v1/observations/export")
    assert (refused.status_code, code_of(refused)) == (403, "forbidden")
    api = Api(world.principal, "export", superuser=world.superuser)
    answer = api.get("/v1/observations/export")
    envelope = answer.json()
    assert {name: envelope[name] for name in ("version", "kind", "rawRecordRetentionDays")} == {
        "version": 1,
        "kind": "unlabelled-platform-query-candidates",
        "rawRecordRetentionDays": 90,
    }
    assert answer.content == canonical.dumps(envelope)
    row = owner_connection.execute("SELECT x::text FROM observations_export_record x").fetchone()[0]
    assert str(key) not in row
    assert "billing" not in row
    assert str(world.principal.principal_id) not in row
    kept = owner_connection.execute(
        "SELECT candidates, envelope_sha256, earliest_expires_at = latest_expires_at, location "
        "FROM observations_export_record"
    ).fetchone()
    assert kept[0] == 1
    assert kept[2:] == (True, "api")
    api.get("/v1/observations/export")
    assert journal.count(owner_connection, "export_record") == 2


def command(path: Path) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    try:
        call_command("export_observations", str(path), stdout=out, stderr=err)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def test_the_command_writes_a_new_private_file(world: World, owner_connection, token, tmp_path) -> None:
    record(owner_connection, world.principal, text="billing rollback")
    path = tmp_path / "out.json"
    code, out, _ = command(path)
    assert (code, out.strip()) == (0, "1")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_bytes())["candidates"][0]["query"] == "billing rollback"
    assert journal.count(owner_connection, "export_record") == 1


def test_existing_files_and_links_are_left_as_they_are(world: World, token, tmp_path) -> None:
    there = tmp_path / "there.json"
    there.write_text("mine")
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "elsewhere.json")
    for path in (there, link):
        code, out, err = command(path)
        assert (code, out) == (2, "")
        assert err.strip() == "The export failed; no file was left."
    assert there.read_text() == "mine"
    assert not (tmp_path / "elsewhere.json").exists()


def test_the_file_itself_follows_no_link_and_takes_no_path_that_is_there(tmp_path) -> None:
    """Also where the path came to be after the command had looked."""
    there, link = tmp_path / "there.json", tmp_path / "link.json"
    there.write_text("mine")
    link.symlink_to(there)
    dangling = tmp_path / "dangling.json"
    dangling.symlink_to(tmp_path / "elsewhere.json")
    for path in (there, link, dangling):
        with pytest.raises(FileExistsError):
            exports.write_file(path, b"theirs")
    assert there.read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == ["dangling.json", "link.json", "there.json"]


def test_the_file_is_private_from_its_first_byte_whatever_the_mask(tmp_path, monkeypatch) -> None:
    path, modes = tmp_path / "out.json", []
    opened = os.fdopen

    def look(descriptor: int, mode: str) -> Any:
        modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return opened(descriptor, mode)

    monkeypatch.setattr(exports.os, "fdopen", look)
    before = os.umask(0)
    try:
        exports.write_file(path, b"mine")
    finally:
        os.umask(before)
    assert modes == [0o600]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_without_a_token_it_fails_before_any_connection(world: World, tmp_path, monkeypatch) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    with CaptureQueriesContext(connection) as queries:
        assert command(tmp_path / "out.json")[0] == 2
    assert len(queries) == 0
    for scopes in ((), ("search",)):
        if scopes:
            monkeypatch.setenv(TOKEN, make_token(world.principal, *scopes, superuser=world.superuser))
        else:
            monkeypatch.setenv(TOKEN, "invalid")
        assert command(tmp_path / "out.json")[0] == 2
    assert not (tmp_path / "out.json").exists()


def test_failed_writing_leaves_neither_a_file_nor_a_record(
    world: World, owner_connection, token, tmp_path, monkeypatch
) -> None:
    record(owner_connection, world.principal, text="billing rollback")

    def fail(descriptor: int) -> None:
        raise OSError("disk full: billing rollback")

    monkeypatch.setattr(exports.os, "fsync", fail)
    code, out, err = command(tmp_path / "out.json")
    assert (code, out, "billing" in err) == (2, "", False)
    assert os.listdir(tmp_path) == []
    assert journal.count(owner_connection, "export_record") == 0
