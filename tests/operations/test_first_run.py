"""The first run's accounts: made once, kept private, never in an installation that is in use."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from apps.accounts.models import Workspace
from apps.accounts.services import workspace_id
from apps.core.db.sessions import staff_session
from memory_platform.environment import environment

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def var(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("MEMORY_VAR", str(tmp_path))
    environment.cache_clear()
    yield tmp_path
    environment.cache_clear()


def test_kept_password_signs_in_and_the_token_file_is_private(var: Path) -> None:
    call_command("first_run")
    password = (var / "admin_password").read_text().strip()
    signed_in = Client().post("/admin/login/?next=/", {"username": "admin", "password": password})
    assert (signed_in.status_code, signed_in["Location"]) == (302, "/")
    for name in ("admin_password", "api_token"):
        assert stat.S_IMODE((var / name).stat().st_mode) == 0o600
    assert (var / "api_token").read_text().startswith("mp_")


def test_admin_is_in_the_groups_of_the_first_workspace(var: Path) -> None:
    call_command("first_run")
    admin = User.objects.get(username="admin")
    with staff_session(admin):
        assert admin.has_perm("accounts.view_traces", Workspace.objects.get(slug="demo"))


def test_second_run_changes_nothing(var: Path) -> None:
    call_command("first_run")
    before = {path.name: path.read_text() for path in var.iterdir()}
    call_command("first_run")
    assert {path.name: path.read_text() for path in var.iterdir()} == before
    assert User.objects.filter(is_superuser=True).count() == 1


def test_run_that_broke_off_before_its_end_is_finished_by_the_next(var: Path) -> None:
    call_command("first_run")
    (var / "api_token").unlink()
    call_command("first_run")
    assert (var / "api_token").exists()
    assert workspace_id("demo")


def test_installation_with_a_superuser_of_its_own_is_left_alone(var: Path) -> None:
    User.objects.create_superuser("root", password="a-long-password")
    call_command("first_run")
    assert not list(var.iterdir())
    assert not User.objects.filter(username="admin").exists()
