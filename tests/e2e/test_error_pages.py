"""Error pages: one answer for hidden and absent, a request id on a failure, no script needed, strict policy."""

from typing import Any

import pytest
from django.test import Client, RequestFactory

from memory_platform.errors import server_error
from tests.e2e.conftest import Scene


def test_a_failure_names_the_request_and_nothing_of_the_error() -> None:
    request: Any = RequestFactory().get("/admin/")
    request.id = "0197-request"
    answer = server_error(request)
    html = answer.content.decode()
    assert answer.status_code == 500
    assert "0197-request" in html
    assert "Nothing of this request was saved" in html


def test_hidden_and_absent_look_the_same(scene: Scene) -> None:
    stranger = scene.client(scene.superuser)
    hidden = stranger.get(f"/admin/traces/trace/{scene.trace}/change/")
    absent = stranger.get("/admin/traces/trace/01975c3a-9b1f-7d53-8a01-cc0a06c36284/change/")
    assert (hidden.status_code, hidden.content) == (absent.status_code, absent.content)
    assert "hold no grant on" in absent.content.decode()


@pytest.mark.parametrize("path", ["/nowhere/", "/admin/nowhere/"])
def test_an_unknown_address_is_a_page(scene: Scene, path: str) -> None:
    answer = scene.client(scene.everything).get(path)
    assert answer.status_code == 404
    assert "hold no grant on" in answer.content.decode()
    assert Client().get("/nowhere/").status_code == 404


def test_error_pages_are_accessible(browser: Any, scene: Scene) -> None:
    from tests.e2e.test_staff_pages import _axe

    page = browser(scene.everything, width=360)
    for path in ("/nowhere/", "/admin/login/"):
        page.goto(path)
        assert _axe(page) == []
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
