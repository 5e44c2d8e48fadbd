"""Policies are published from what they would change, by who may change it."""

import json
import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from apps.core import policies
from apps.core.db.sessions import principal_session
from apps.core.models import StoredPolicy
from tests.support import factories

pytestmark = pytest.mark.django_db


def _hidden(html: str) -> dict[str, str]:
    found = re.findall(r'<input type="hidden" name="(version|seen|previewed)" value="([^"]*)"', html)
    return {name: unescape(value) for name, value in found}


@pytest.fixture
def scene() -> Any:
    workspace = factories.make_workspace()
    client = Client()
    client.force_login(factories.make_staff(workspace, "view_traces", "review_retention"))
    from apps.core.db.sessions import staff_session

    with staff_session(factories.make_staff(workspace, "view_traces")):
        row = policies.current_policy(None, "memory")
    return workspace, client, row


def _fields(row: StoredPolicy, workspace: Any, **days: int) -> dict[str, str]:
    document = {**row.document, "retention_days": {**row.document["retention_days"], **days}}
    return {"workspace": str(workspace.pk), "document": json.dumps(document), "reason": "shorter"}


def test_the_first_post_shows_the_change_and_the_second_publishes_it(scene: Any) -> None:
    workspace, client, row = scene
    url = f"/admin/core/storedpolicy/{row.pk}/publish/"
    fields = _fields(row, workspace, trace=60)
    first = client.post(url, {**_hidden(client.get(url).content.decode()), **fields})
    html = first.content.decode()
    assert first.status_code == 200
    assert "Nothing is published yet" in html
    assert "/retention_days/trace" in html
    assert "Publish 1 change<" in html
    second = client.post(url, {**_hidden(html), **fields})
    assert second.status_code == 302
    page = client.get(second["Location"]).content.decode()
    assert "/retention_days/trace" in page
    assert "shorter" in page
    assert "<span>in effect</span>" in page
    # What every kind has is quiet: a sign and words without a tint.
    assert 'class="gv-mark gv-ok bare"' in client.get("/admin/core/storedpolicy/").content.decode()


def test_another_document_than_the_one_shown_is_shown_first(scene: Any) -> None:
    workspace, client, row = scene
    url = f"/admin/core/storedpolicy/{row.pk}/publish/"
    shown = client.post(
        url, {**_hidden(client.get(url).content.decode()), **_fields(row, workspace, trace=60)}
    )
    other = client.post(
        url, {**_hidden(shown.content.decode()), **_fields(row, workspace, trace=7, trace_text=5)}
    )
    assert other.status_code == 200
    assert "Nothing is published yet" in other.content.decode()


@pytest.mark.parametrize("days", [{"trace": 0}, {"trace": 10, "trace_text": 20}])
def test_an_invalid_document_is_refused_with_its_place(scene: Any, days: dict[str, int]) -> None:
    workspace, client, row = scene
    url = f"/admin/core/storedpolicy/{row.pk}/publish/"
    fields = _fields(row, workspace, **days)
    html = client.post(url, {**_hidden(client.get(url).content.decode()), **fields}).content.decode()
    assert "not valid" in html
    answer = client.post(url, {**_hidden(html), **fields})
    assert answer.status_code != 302


def test_a_field_of_another_grant_is_refused(scene: Any) -> None:
    workspace, client, row = scene
    url = f"/admin/core/storedpolicy/{row.pk}/publish/"
    fields = {**_fields(row, workspace), "document": json.dumps({**row.document, "half_life_s": 7200})}
    html = client.post(url, {**_hidden(client.get(url).content.decode()), **fields}).content.decode()
    answer = client.post(url, {**_hidden(html), **fields})
    assert answer.status_code == 403
    with principal_session(factories.make_principal(workspace)):
        versions = StoredPolicy.objects.filter(kind=row.kind).values_list("version", flat=True)
        assert set(versions) == {row.version}


def test_who_may_publish_nothing_has_no_button(scene: Any) -> None:
    workspace, _, row = scene
    client = Client()
    client.force_login(factories.make_staff(workspace, "view_traces"))
    page = client.get(f"/admin/core/storedpolicy/{row.pk}/change/").content.decode()
    assert "Publish a change" not in page
    assert client.get(f"/admin/core/storedpolicy/{row.pk}/publish/").status_code == 404
