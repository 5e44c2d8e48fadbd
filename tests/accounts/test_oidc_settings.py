"""Settings of OIDC sign-in: what starts, what does not, and what a provider's own description gives."""

import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from pydantic import ValidationError

from apps.accounts.issuers.keys import ALGORITHMS
from memory_platform.environment import Environment
from tests.accounts.test_staff_sign_in import run
from tests.support.oidc import Provider, openid_provider
from tests.support.pages import text_of
from tests.support.web import running_web

COMPLETE = {
    "OIDC_CLIENT_ID": "memory",
    "OIDC_ISSUER": "https://login.example.org",
    "OIDC_AUTHORIZATION_URL": "https://login.example.org/authorize",
    "OIDC_TOKEN_URL": "https://login.example.org/token",
    "OIDC_USER_URL": "https://login.example.org/user",
    "OIDC_JWKS_URL": "https://login.example.org/keys",
}


@pytest.fixture
def provider(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    with openid_provider(tmp_path) as made:
        monkeypatch.setenv("SSL_CERT_FILE", str(made.authority))
        settings.OUTBOUND_PRIVATE_HOSTS = {"localhost"}
        yield made


def test_a_description_gives_the_settings(provider: Provider, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("oidc_settings", provider.issuer)
    printed = capsys.readouterr()
    given = dict(line.split("=", 1) for line in printed.out.strip().splitlines())
    assert given == {
        "OIDC_ISSUER": provider.issuer,
        "OIDC_AUTHORIZATION_URL": provider.endpoint("auth"),
        "OIDC_TOKEN_URL": provider.endpoint("token"),
        "OIDC_USER_URL": provider.endpoint("userinfo"),
        "OIDC_JWKS_URL": provider.endpoint("certs"),
        "OIDC_SIGN_ALGORITHM": "RS256",
    }
    assert set(given) <= {name.upper() for name in Environment.model_fields}
    assert "/oidc/callback/" in printed.err


def shown_settings() -> str:
    """The settings that the documentation shows, as lines."""
    [block] = re.findall(r"```sh\n( +OIDC_CLIENT_ID=.*?)```", text_of("docs/credentials.md"), re.DOTALL)
    return dedent(block).strip()


def as_environment(lines: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in lines.splitlines())


def test_the_documentation_shows_what_is_printed(
    provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("oidc_settings", provider.issuer)
    printed = capsys.readouterr().out.replace(provider.url, "https://login.example.org").splitlines()
    assert shown_settings().splitlines()[2:] == printed


@pytest.mark.django_db(transaction=True)
def test_the_settings_of_the_documentation_let_staff_in(provider: Provider, tmp_path: Path) -> None:
    """In the web server as it is run, with nothing set but what the page says."""
    User.objects.create_superuser("ann", "ann@example.org")
    variables = as_environment(shown_settings().replace("https://login.example.org", provider.url))
    provider.client_secret = variables["OIDC_CLIENT_SECRET"]
    variables |= {"SSL_CERT_FILE": str(provider.authority), "OUTBOUND_PRIVATE_HOSTS": '["localhost"]'}
    folder = tmp_path / "web"
    folder.mkdir()
    trust = ssl.create_default_context(cafile=provider.authority)
    with running_web(folder, **variables) as web:
        address = f"http://127.0.0.1:{web.port}"
        provider.redirect_uris = {f"{address}/oidc/callback/"}
        with httpx.Client(
            base_url=address, verify=trust, trust_env=False, follow_redirects=True, timeout=60
        ) as browser:
            page = browser.get("/admin/login/?next=/v1/me")
            button = re.search(r'href="(/oidc/authenticate/[^"]*)"', page.text)
            assert button, page.text
            assert browser.get(button[1]).json()["via"] == "session"
            provider.user_claims = {"email": "eve@example.org"}
            assert browser.get(button[1]).status_code == 403
        printed = web.log.read_text()
    assert "staff_signed_in" in printed
    assert '"code": "no_account"' in printed
    for secret in provider.secrets | {provider.client_secret, "ann-4711"}:
        assert secret not in printed
    assert "@example.org" not in printed


SPOILT: dict[str, tuple[dict[str, Any], str]] = {
    "another issuer": ({"issuer": "https://login.example.org"}, "calls itself by another address"),
    "no token endpoint": ({"token_endpoint": None}, "token_endpoint"),
    "plain http": ({"userinfo_endpoint": "http://localhost/user"}, "userinfo_endpoint"),
    "a second line": ({"jwks_uri": "https://localhost/keys\nDEBUG=true"}, "jwks_uri"),
    "shared secrets alone": ({"id_token_signing_alg_values_supported": ["HS256", "none"]}, "asymmetric"),
}


@pytest.mark.parametrize("case", SPOILT)
def test_a_description_that_will_not_do_is_named(provider: Provider, case: str) -> None:
    provider.description, words = SPOILT[case]
    with pytest.raises(CommandError, match=words):
        call_command("oidc_settings", provider.issuer)


@pytest.mark.parametrize(
    ("methods", "basic"), [(None, True), (["client_secret_basic"], True), (["client_secret_post"], False)]
)
def test_how_the_secret_goes_is_the_providers_choice(
    provider: Provider, capsys: pytest.CaptureFixture[str], methods: list[str] | None, basic: bool
) -> None:
    provider.description = {"token_endpoint_auth_methods_supported": methods}
    call_command("oidc_settings", provider.issuer)
    assert ("OIDC_TOKEN_BASIC=true" in capsys.readouterr().out) is basic


def test_a_provider_of_ones_own_network_is_listed_first(provider: Provider, settings: Any) -> None:
    settings.OUTBOUND_PRIVATE_HOSTS = frozenset()
    with pytest.raises(CommandError, match="OUTBOUND_PRIVATE_HOSTS"):
        call_command("oidc_settings", provider.issuer)
    assert provider.asked == []


def test_a_provider_that_is_none_is_named(provider: Provider) -> None:
    with pytest.raises(CommandError, match="status 404"):
        call_command("oidc_settings", f"{provider.url}/realms/other")
    with pytest.raises(CommandError, match="not_https"):
        call_command("oidc_settings", "http://localhost")
    with pytest.raises(CommandError, match="not_reached"):
        call_command("oidc_settings", "https://localhost:1")


def test_nothing_starts_on_half_of_the_settings() -> None:
    done = run(
        "check", **(COMPLETE | {"OIDC_ISSUER": "", "OIDC_TOKEN_URL": "http://login.example.org/token"})
    )
    assert done.returncode != 0
    assert "OIDC_CLIENT_ID needs an https address in OIDC_ISSUER, OIDC_TOKEN_URL." in done.stderr
    assert run("check", **COMPLETE).returncode == 0


@pytest.mark.parametrize("algorithm", ["none", "HS256", "rs256"])
def test_an_algorithm_that_others_could_sign_with_is_none(
    algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OIDC_SIGN_ALGORITHM", algorithm)
    with pytest.raises(ValidationError):
        Environment()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_of_issuers_may_be_set(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OIDC_SIGN_ALGORITHM", algorithm)
    assert Environment().oidc_sign_algorithm == algorithm
