"""Staff click the button on the page of sign-in, come back from their provider, and are in the admin."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from tests.e2e.test_staff_pages import _axe
from tests.support.oidc import Provider, provider_of_the_platform

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
BUTTON = "Sign in through your organisation"


@pytest.fixture
def provider(
    live_server: Any, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Provider]:
    with provider_of_the_platform(tmp_path, settings, monkeypatch) as made:
        made.redirect_uris = {f"{live_server.url}/oidc/callback/"}
        yield made


@pytest.fixture
def page(chromium: Any, live_server: Any, provider: Provider) -> Iterator[Any]:
    # The provider's certificate is its own authority, which this browser does not know.
    context = chromium.new_context(base_url=live_server.url, ignore_https_errors=True)
    opened = context.new_page()
    opened.problems = []
    opened.on("pageerror", lambda error: opened.problems.append(str(error)))
    yield opened
    context.close()


def test_the_button_leads_through_the_provider_into_the_admin(page: Any, provider: Provider) -> None:
    User.objects.create_superuser("ann", "ann@example.org")
    page.goto("/admin/auth/user/")
    assert "/admin/login/" in page.url
    button = page.get_by_role("link", name=BUTTON)
    button.focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Staff").first.wait_for()
    assert page.url.endswith("/admin/auth/user/")
    assert provider.asked == ["auth", "token", "certs", "userinfo"]
    assert page.problems == []
    page.goto("/admin/")
    page.get_by_role("button", name="ann").first.wait_for()


@pytest.mark.parametrize("dark", [False, True])
def test_who_is_no_staff_user_is_told_so(page: Any, provider: Provider, dark: bool) -> None:
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.set_viewport_size({"width": 360, "height": 700})
    page.goto("/admin/login/")
    page.get_by_role("link", name=BUTTON).click()
    page.get_by_role("heading", name="No staff user goes with that account.").wait_for()
    assert _axe(page) == []
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert "ann@example.org" not in page.content()
    page.get_by_role("link", name="Back to sign-in").click()
    page.get_by_role("link", name=BUTTON).wait_for()
    assert page.problems == []
