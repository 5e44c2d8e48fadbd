"""Rehearsals in a database that was marked as disposable: the restore drill of B9, and who is refused."""

import json
import os
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection, connections

from apps.core.ids import uuid7
from apps.observations.activation.items import ITEMS
from apps.observations.rehearsal.disposable import FLAG
from apps.observations.services import erasure
from apps.observations.services.evidence import check_measured
from apps.operations.erasure import restore as replaying
from tests.conftest import DATABASE
from tests.support.factories import World
from tests.support.journal import record

pytestmark = pytest.mark.django_db(transaction=True)

COPY = f"{DATABASE}_restored"


def admin(sql: str) -> Any:
    """What a statement of the administrator answers, from outside of the database."""
    url = os.environ["DATABASE_ADMIN_URL"].replace(f"/{DATABASE}?", "/postgres?")
    with psycopg.connect(url, autocommit=True) as there:
        cursor = there.execute(sql)
        return cursor.fetchall() if cursor.description else None


def databases() -> set[str]:
    return {name for (name,) in admin("SELECT datname FROM pg_database")}


def step(*arguments: str) -> str:
    """What a step of the command prints."""
    out = StringIO()
    call_command("journal_rehearsal", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture
def unmarked() -> Iterator[None]:
    """The suite's database without a mark, before and after. Nobody is connected to it, so that it can be copied."""
    connections.close_all()
    yield
    connections.close_all()
    admin(f"COMMENT ON DATABASE {DATABASE} IS NULL")
    admin(f"DROP DATABASE IF EXISTS {COPY} WITH (FORCE)")


@pytest.fixture
def disposable(unmarked: None) -> None:
    assert "is disposable" in step("flag", "--name", DATABASE)
    connections.close_all()


def drilled() -> dict[str, Any]:
    """What the drill prints."""
    return dict(json.loads(step("restore", "--run", str(uuid7()))))


def test_the_drill_restores_a_copy_and_prints_what_is_posted(
    disposable: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasure, "start", lambda certificate_id: pytest.fail("no worker may hear of it"))
    printed = drilled()
    assert printed["measured"] == {
        "disposable": True,
        "closed": True,
        "opened_undrained": False,
        "overdue_found": 4,  # two records, the text of one, and the text of a record that lives
        "erased_found": 2,
        "erasures_replayed": 1,
        "closed_after_drain": True,
        "opened": True,
        "overdue_left": 0,
        "erased_left": 0,
        "certificate_back": True,
        "kept": 3,
        "timestamps_unchanged": True,
    }
    assert (printed["item"], printed["result"]) == ("B9", "pass")
    assert all(printed["measured"][name] is value for name, value in ITEMS["B9"].needs)
    check_measured(printed["measured"])
    assert COPY not in databases()
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_database()")
        assert cursor.fetchone() == (DATABASE,)


def test_the_installations_erasure_file_never_hears_of_a_drill(disposable: None) -> None:
    file = Path(django_settings.ERASURE_FILE)
    drilled()
    assert file == Path(django_settings.ERASURE_FILE)
    assert not file.exists()


def test_a_second_drill_in_the_same_database_passes_too(disposable: None) -> None:
    assert [drilled()["result"] for _ in range(2)] == ["pass", "pass"]
    assert "is disposable" in step("flag", "--name", DATABASE)  # records of drills do not unmark it


def test_erasures_that_are_not_replayed_fail_the_drill(
    disposable: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "replay_file", lambda file: [])
    monkeypatch.setattr(replaying, "missing", lambda file: [])
    printed = drilled()
    assert printed["result"] == "fail"
    assert (printed["measured"]["erased_left"], printed["measured"]["certificate_back"]) == (2, False)


def test_a_drill_that_stops_says_why_and_leaves_no_copy(
    disposable: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "replay_file", lambda file: [])
    with pytest.raises(CommandError, match="certificates_missing"):
        drilled()
    assert COPY not in databases()
    assert connection.settings_dict["NAME"] == DATABASE


@pytest.mark.parametrize("name", ["alarms", "restore"])
def test_an_unmarked_database_is_refused_and_untouched(unmarked: None, name: str) -> None:
    with pytest.raises(CommandError, match="not marked as disposable"):
        step(name, "--run", str(uuid7()))
    assert not User.objects.exists()
    assert COPY not in databases()


@pytest.mark.parametrize("name", ["alarms", "restore"])
def test_a_run_is_named(disposable: None, name: str) -> None:
    with pytest.raises(CommandError, match=f"{name} needs --run"):
        step(name)


def test_another_database_of_the_copys_name_stays(disposable: None) -> None:
    admin(f"CREATE DATABASE {COPY} TEMPLATE template0")
    with pytest.raises(CommandError, match=f"there is a database {COPY}"):
        drilled()
    assert COPY in databases()


def test_the_copy_of_a_drill_that_was_killed_is_replaced(disposable: None) -> None:
    admin(f"CREATE DATABASE {COPY} TEMPLATE template0")
    admin(f"COMMENT ON DATABASE {COPY} IS '{FLAG}'")
    assert drilled()["result"] == "pass"


def test_a_database_that_others_use_is_not_copied(disposable: None) -> None:
    with (
        psycopg.connect(os.environ["DATABASE_OWNER_URL"]),
        pytest.raises(CommandError, match="somebody else is connected"),
    ):
        drilled()


def test_what_holds_records_is_not_marked(world: World, unmarked: None) -> None:
    with pytest.raises(CommandError, match="Type the name"):
        step("flag", "--name", "another")
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as owner:
        record(owner, world.principal)
    with pytest.raises(CommandError, match="has records"):
        step("flag", "--name", DATABASE)
    with pytest.raises(CommandError, match="not marked as disposable"):
        step("restore", "--run", str(uuid7()))
