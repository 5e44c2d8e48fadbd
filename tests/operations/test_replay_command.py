"""The command of a restore: what the erasure file names goes again, and a damaged file stops it."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from apps.accounts import selectors
from apps.core.db.sessions import principal_session, staff_session
from apps.core.problems import NotFound
from apps.operations.erasure import services
from apps.operations.erasure.tasks import erase
from tests.support.factories import make_world

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def file(settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "erasures.jsonl"
    path.touch(mode=0o600)
    settings.ERASURE_FILE = path
    monkeypatch.setattr(erase, "delay", lambda certificate_id: None)  # no worker takes it
    return path


def replay() -> str:
    out = StringIO()
    call_command("replay_erasures", stdout=out)
    return out.getvalue()


def test_restored_principal_goes_again(file: Path, admin_connection) -> None:
    world = make_world()
    with principal_session(world.principal):
        services.begin()
    admin_connection.execute("DELETE FROM operations_erasurerun")
    admin_connection.execute("DELETE FROM operations_erasurecertificate")
    admin_connection.execute("UPDATE accounts_principal SET disabled_at = NULL")
    assert "1 erasures" in replay()
    with pytest.raises(NotFound), staff_session(world.superuser):
        selectors.get_principal(world.principal.principal_id)
    assert "0 erasures" in replay()


def test_damaged_file_stops_before_anything_runs(file: Path) -> None:
    file.write_text("{}\n")
    with pytest.raises(CommandError, match="Nothing was replayed"):
        replay()


def test_absent_file_is_not_taken_for_an_empty_one(file: Path) -> None:
    file.unlink()
    with pytest.raises(CommandError):
        replay()
