"""Sign-in of staff: lock-out, second factor, OIDC, cookies."""

import os
import re
import subprocess
import sys

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client, override_settings
from django_otp.oath import totp
from django_otp.plugins.otp_totp.models import TOTPDevice

from apps.accounts import second_factor
from tests.support import ROOT
from tests.support.factories import make_world

pytestmark = pytest.mark.django_db
PASSWORD = "a-long-password"


def sign_in(client: Client, user: User, password: str = PASSWORD, **more):
    return client.post("/admin/login/", {"username": user.username, "password": password}, **more)


def code(user: User) -> str:
    device = TOTPDevice.objects.get(user=user)
    # Each step is good once; the next one is within the tolerance.
    return f"{totp(device.bin_key, drift=1 if device.last_t > 0 else 0):06d}"


def test_a_password_opens_the_admin_and_the_cookie_is_guarded() -> None:
    client, world = Client(), make_world()
    answer = sign_in(client, world.superuser)
    assert answer.status_code == 302
    assert client.get("/admin/").status_code == 200
    cookie = answer.cookies["sessionid"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"


def test_a_name_is_locked_at_an_address_after_five_wrong_passwords() -> None:
    world = make_world()
    here = Client(REMOTE_ADDR="203.0.113.30")
    answers = [sign_in(here, world.superuser, "wrong") for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200] * 4 + [429]
    refused = sign_in(here, world.superuser)
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) == 900
    assert sign_in(Client(REMOTE_ADDR="203.0.113.31"), world.superuser).status_code == 302


def test_a_user_who_is_not_staff_gets_nowhere() -> None:
    user = User.objects.create_user("visitor", password=PASSWORD)
    client = Client()
    assert sign_in(client, user).status_code == 200
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    assert client.get("/admin/").status_code == 302
    assert client.get("/v1/me").status_code == 401


@override_settings(STAFF_SECOND_FACTOR=True)
def test_a_required_second_factor_is_set_up_at_the_first_sign_in() -> None:
    client, world = Client(), make_world()
    user = world.superuser
    sign_in(client, user)
    assert client.get("/admin/").status_code == 302
    assert client.get("/v1/me").status_code == 401
    gate = client.get("/admin/login/?next=/admin/")
    assert gate.status_code == 302
    assert gate["Location"].startswith("/admin/second-factor/")
    page = client.get(gate["Location"])
    secret = second_factor.secret(TOTPDevice.objects.get(user=user))
    assert secret in page.content.decode()
    assert "gv-qr" in page.content.decode()
    assert client.get(gate["Location"]).content.count(secret.encode()) == 1  # the same after a reload
    assert client.post("/admin/second-factor/", {"code": "000000"}).status_code == 200
    assert client.get("/admin/").status_code == 302
    TOTPDevice.objects.filter(user=user).update(throttling_failure_count=0)
    done = client.post("/admin/second-factor/", {"code": code(user), "next": "https://evil.example.org/"})
    recovery = re.findall(r"<li><code>(\w+)</code>", done.content.decode())
    assert len(recovery) == 10
    assert b"evil" not in done.content
    assert client.get("/admin/").status_code == 200
    assert client.get("/v1/me").json()["via"] == "session"
    again = Client()
    sign_in(again, user)
    assert again.get("/admin/").status_code == 302
    assert again.post("/admin/second-factor/", {"code": recovery[0]}).status_code == 302
    assert again.get("/admin/").status_code == 200
    third = Client()
    sign_in(third, user)
    assert third.post("/admin/second-factor/", {"code": recovery[0]}).status_code == 200
    assert third.get("/admin/").status_code == 302


def test_who_has_set_one_up_must_show_it_where_it_is_optional() -> None:
    client, world = Client(), make_world()
    TOTPDevice.objects.create(user=world.superuser, name=second_factor.NAME, confirmed=True)
    sign_in(client, world.superuser)
    assert client.get("/admin/").status_code == 302
    page = client.get("/admin/second-factor/").content.decode()
    assert "gv-qr" not in page
    assert client.post("/admin/second-factor/", {"code": code(world.superuser)}).status_code == 302
    assert client.get("/admin/").status_code == 200


def test_a_lost_second_factor_is_reset_with_a_reason(capsys) -> None:
    world = make_world()
    TOTPDevice.objects.create(user=world.superuser, name=second_factor.NAME, confirmed=True)
    call_command(
        "reset_second_factor",
        world.superuser.username,
        "--as",
        world.superuser.username,
        "--reason",
        "lost phone",
    )
    assert "1 second factors forgotten" in capsys.readouterr().out
    assert not second_factor.is_set_up(world.superuser)


def test_the_second_factor_page_is_for_signed_in_staff() -> None:
    assert Client().get("/admin/second-factor/")["Location"].startswith("/admin/login/")


def run(command: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-W", "ignore", "manage.py", *command.split()],
        cwd=ROOT,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
    )


def test_check_deploy_is_clean_under_production_settings() -> None:
    production = {
        "MEMORY_PRODUCTION": "true",
        "SECRET_KEY": "an-example-of-a-long-key-9d8f7g6h5j4k3l2m1n0p-" + "abcdefghij" * 2,
        "ALLOWED_HOSTS": '["memory.example.org"]',
        "CSRF_TRUSTED_ORIGINS": '["https://memory.example.org"]',
        "TRUSTED_PROXIES": "1",
        "BROKER_URL": "redis://127.0.0.1:1/0",
        "OIDC_CLIENT_ID": "memory",
        "OIDC_CLIENT_SECRET": "secret",
        "OIDC_ISSUER": "https://login.example.org",
        "OIDC_AUTHORIZATION_URL": "https://login.example.org/authorize",
        "OIDC_TOKEN_URL": "https://login.example.org/token",
        "OIDC_USER_URL": "https://login.example.org/user",
        "OIDC_JWKS_URL": "https://login.example.org/keys",
    }
    done = run("check --deploy --fail-level WARNING", **production)
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout


@pytest.mark.parametrize(
    "broken",
    [
        {"SECRET_KEY": "short"},
        {"SECRET_KEY": "x" * 60, "DEBUG": "true"},
    ],
)
def test_production_does_not_start_on_defaults(broken) -> None:
    done = run("check", MEMORY_PRODUCTION="true", **broken)
    assert done.returncode != 0
    assert "ImproperlyConfigured" in done.stderr


def test_settings_reference_names_every_setting(capsys) -> None:
    from memory_platform.environment import Environment

    call_command("settings_reference")
    lines = capsys.readouterr().out.strip().splitlines()
    assert len(lines) == 2 + len(Environment.model_fields)
    assert all(line.count(" | ") == 3 or line.startswith("|---") for line in lines)
    assert all(not line.endswith("|  |") for line in lines), "a setting without a description"
