"""Governed actions: shown first, bound to what was seen, with a reason, once."""

import re
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import Principal
from apps.core.db.sessions import staff_session
from tests.support import factories

pytestmark = pytest.mark.django_db
DIALOG = {"X-Gov-Dialog": "1"}


class Scene:
    def __init__(self) -> None:
        self.world = factories.make_world()
        self.user = factories.make_staff(self.world.workspace, "operate_collection")
        self.client = Client()
        self.client.force_login(self.user)
        self.page = f"/admin/accounts/principal/{self.world.principal.principal_id}/"
        self.url = f"{self.page}disable/"

    def hidden(self, html: str) -> dict[str, str]:
        from html import unescape

        found = re.findall(r'<input type="hidden" name="(version|seen)" value="([^"]*)"', html)
        return {name: unescape(value) for name, value in found}

    def disabled(self) -> bool:
        with staff_session(self.world.superuser):
            row = Principal.objects.defer("hash_key").get(pk=self.world.principal.principal_id)
            return row.disabled_at is not None


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_the_preview_is_a_fragment_for_the_dialog_and_a_page_without_it(scene: Scene) -> None:
    fragment = scene.client.get(scene.url, headers=DIALOG).content.decode()
    page = scene.client.get(scene.url).content.decode()
    assert fragment.lstrip().startswith("<form")
    assert "<html" in page
    for html in (fragment, page):
        assert "Refuses its 0 tokens" in html
        assert "Disable the principal" in html
    assert not scene.disabled()


def test_it_acts_once_with_a_reason_and_says_what_it_did(scene: Scene) -> None:
    fields = scene.hidden(scene.client.get(scene.url).content.decode())
    answer = scene.client.post(scene.url, {**fields, "reason": "left the project"}, follow=True)
    assert scene.disabled()
    html = answer.content.decode()
    assert "is disabled." in html
    assert 'tabindex="-1" data-message' in html


def test_from_the_dialog_the_answer_leads_to_the_page(scene: Scene) -> None:
    fields = scene.hidden(scene.client.get(scene.url, headers=DIALOG).content.decode())
    answer = scene.client.post(scene.url, {**fields, "reason": "left the project"}, headers=DIALOG)
    assert answer.status_code == 204
    assert answer["X-Gov-Location"] == f"{scene.page}change/"


def test_without_a_reason_nothing_happens_and_the_field_says_so(scene: Scene) -> None:
    fields = scene.hidden(scene.client.get(scene.url).content.decode())
    answer = scene.client.post(scene.url, {**fields, "reason": "  "}, headers=DIALOG)
    assert answer.status_code == 422
    html = answer.content.decode()
    assert 'role="alert"' in html
    assert 'href="#id_reason"' in html
    assert not scene.disabled()


@pytest.mark.parametrize("reason", ["ask maria@example.org", "token: ghp_" + "a" * 36])
def test_a_reason_that_may_not_be_kept_is_refused(scene: Scene, reason: str) -> None:
    fields = scene.hidden(scene.client.get(scene.url).content.decode())
    answer = scene.client.post(scene.url, {**fields, "reason": reason}, headers=DIALOG)
    assert answer.status_code == 422
    assert not scene.disabled()


def test_a_stale_preview_is_refused_keeps_the_reason_and_says_what_changed(scene: Scene) -> None:
    fields = scene.hidden(scene.client.get(scene.url).content.decode())
    factories.make_token(scene.world.principal, "search", superuser=scene.world.superuser)
    answer = scene.client.post(scene.url, {**fields, "reason": "left the project"}, headers=DIALOG)
    html = answer.content.decode()
    assert answer.status_code == 412
    assert "left the project" in html
    assert "when you looked" in html
    assert "valid tokens" in html
    assert not scene.disabled()
    again = scene.client.post(scene.url, {**scene.hidden(html), "reason": "left the project"}, headers=DIALOG)
    assert again.status_code == 204
    assert scene.disabled()


@pytest.mark.parametrize("version", ["", "0" * 64])
def test_a_post_without_the_version_seen_does_nothing(scene: Scene, version: str) -> None:
    answer = scene.client.post(
        scene.url, {"version": version, "seen": "no json", "reason": "r"}, headers=DIALOG
    )
    assert answer.status_code == 412
    assert not scene.disabled()


def test_without_the_grant_the_action_is_not_there(scene: Scene) -> None:
    watcher = Client()
    watcher.force_login(factories.make_staff(scene.world.workspace, "view_traces"))
    assert "Disable…" not in watcher.get(f"{scene.page}change/").content.decode()
    assert watcher.get(scene.url).status_code == 404
    assert watcher.post(scene.url, {"reason": "r"}).status_code == 404
    assert "Disable…" in scene.client.get(f"{scene.page}change/").content.decode()
    nobody = Client().get(scene.url)
    assert nobody.status_code == 302
    assert "/login/" in nobody["Location"]


def test_a_second_post_of_the_same_form_changes_nothing_more(scene: Scene) -> None:
    fields = scene.hidden(scene.client.get(scene.url).content.decode())
    scene.client.post(scene.url, {**fields, "reason": "left the project"})
    assert scene.client.post(scene.url, {**fields, "reason": "left the project"}).status_code == 404
    assert scene.disabled()


def test_a_secret_is_in_one_answer_only_and_is_never_stored(scene: Scene) -> None:
    url = f"{scene.page}create-token/"
    fields = scene.hidden(scene.client.get(url, headers=DIALOG).content.decode())
    data: dict[str, Any] = {**fields, "name": "agent", "scopes": ["search"], "expires": "30", "reason": ""}
    answer = scene.client.post(url, data, headers=DIALOG)
    html = answer.content.decode()
    secret = re.search(r"mp_[A-Za-z0-9_-]{20,}", html)
    assert answer.status_code == 200
    assert secret
    assert answer["Cache-Control"].startswith("no-store")
    assert answer["X-Gov-Fill"] == "#gv-result"
    assert secret[0] not in scene.client.get(f"{scene.page}change/").content.decode()


def test_it_has_no_cross_site_way_in(scene: Scene) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(scene.user)
    fields = scene.hidden(client.get(scene.url).content.decode())
    assert client.post(scene.url, {**fields, "reason": "r"}).status_code == 403
    assert not scene.disabled()
