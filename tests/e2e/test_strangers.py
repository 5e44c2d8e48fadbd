"""A staff user without a grant on a workspace: no row and no choice of it, wherever one could look."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import models
from django.urls import reverse

from apps.accounts.grants import GRANTS
from apps.accounts.models import Principal
from apps.core.db.sessions import staff_session
from tests.e2e import pages
from tests.e2e.conftest import Scene
from tests.support import factories


@pytest.fixture(params=["no grant at all", "every grant on another workspace"])
def stranger(scene: Scene, request: Any) -> User:
    elsewhere = factories.make_world().workspace
    return factories.make_staff(elsewhere, *(GRANTS if request.param.startswith("every") else ()))


@pytest.fixture
def marks(scene: Scene) -> list[str]:
    """What would tell of the workspace: its names, and ids and subjects of what is in it."""
    with staff_session(scene.everything):
        principals = list(Principal.objects.filter(workspace=scene.workspace).values_list("pk", "subject"))
    ids = [scene.workspace.pk, scene.trace, scene.confirmation, *(pk for pk, _ in principals)]
    own = [subject for _, subject in principals if subject != "shared"]
    return [scene.workspace.name, scene.workspace.slug, *map(str, ids), *own]


def body_of(answer: Any, *asked: str) -> str:
    """The text of an answer without what the request itself said."""
    content = b"".join(answer.streaming_content) if answer.streaming else answer.content
    text = str(content.decode())
    for words in asked:
        text = text.replace(words, "")
    return text


def told(text: str, marks: list[str]) -> list[str]:
    return [mark for mark in marks if mark in text]


def rows_of_the_workspace(scene: Scene) -> Iterator[tuple[models.Model, str]]:
    """One row of every list that has one in the workspace, and the address of its page."""
    with staff_session(scene.everything):
        for model, model_admin in admin.site._registry.items():
            names = {field.attname for field in model._meta.concrete_fields}
            if "workspace_id" not in names and model._meta.label != "accounts.Workspace":
                continue
            own = {"workspace_id" if "workspace_id" in names else "pk": scene.workspace.pk}
            found = model._default_manager.filter(**own).defer(*getattr(model, "raw_text", ())).first()
            if found is not None:
                route = f"admin:{model._meta.app_label}_{model._meta.model_name}_change"
                yield found, reverse(route, args=[found.pk])
            assert model_admin


def test_lists_choices_and_exports_hold_nothing_of_it(scene: Scene, stranger: User, marks: list[str]) -> None:
    client = scene.client(stranger)
    exports = [f"{url}export/?format={kind}" for url in pages.lists() for kind in ("csv", "jsonl")]
    windows = [f"{url}?window=all" for url in pages.lists()]
    for url in [*pages.every(stranger), *windows, *exports]:
        assert told(body_of(client.get(url)), marks) == [], url


def test_filters_and_searches_find_nothing_of_it(scene: Scene, stranger: User, marks: list[str]) -> None:
    client = scene.client(stranger)
    principal = str(scene.principal.principal_id)
    asked = [
        {"principal": principal, "window": "all"},
        {"object": str(scene.trace), "window": "all"},
        {"workspace": scene.workspace.slug},
        {"workspace__id__exact": str(scene.workspace.pk)},
        {"principal__subject": "token:"},
        {"q": "token:"},
        {"q": principal},
    ]
    for url in pages.lists():
        for query in asked:
            answer = client.get(f"{url}?{urlencode(query)}", follow=True)
            assert answer.status_code in (200, 400, 403), (url, query)
            left = [mark for mark in marks if mark not in query.values()]
            assert told(body_of(answer, *query.values()), left) == [], (url, query)
    for words in (principal, str(scene.trace), scene.workspace.slug):
        for form in ("", "&extended=1"):
            answer = client.get(f"/admin/search/?s={words}{form}")
            assert told(body_of(answer, words), [m for m in marks if m != words]) == [], words


def test_pages_history_and_actions_are_not_there_by_address(scene: Scene, stranger: User) -> None:
    client = scene.client(stranger)
    found = list(rows_of_the_workspace(scene))
    assert len({type(row) for row, _ in found}) >= 8
    nobody = scene.everything
    opened = [url for url in pages.objects(nobody) if any(str(row.pk) in url for row, _ in found)]
    assert len(opened) >= 12
    for row, url in found:
        base = url.removesuffix("change/")
        for address in (url, f"{base}history/", f"{base}delete/"):
            assert client.get(address).status_code in (403, 404), address
        assert scene.client(scene.everything).get(url).status_code == 200, url
        assert row.pk
    for address in opened:
        for answer in (client.get(address), client.post(address, {"reason": "because", "version": "x"})):
            assert answer.status_code in (403, 404), address


def test_autocomplete_offers_nothing_of_it(scene: Scene, stranger: User, marks: list[str]) -> None:
    client = scene.client(stranger)
    for model in admin.site._registry:
        for field in model._meta.get_fields():
            if not isinstance(field, models.ForeignKey):
                continue
            query = {
                "app_label": model._meta.app_label,
                "model_name": str(model._meta.model_name),
                "field_name": field.name,
                "term": "",
            }
            answer = client.get(f"/admin/autocomplete/?{urlencode(query)}")
            assert answer.status_code in (200, 403, 404), query
            assert told(body_of(answer), marks) == [], query


def test_the_switcher_offers_and_takes_no_such_workspace(
    scene: Scene, stranger: User, marks: list[str]
) -> None:
    client = scene.client(stranger)
    client.post("/admin/workspace/", {"workspace": scene.workspace.slug, "next": "/admin/"})
    html = body_of(client.get("/admin/"))
    assert told(html, marks) == []
    assert not re.search(rf"value=.{re.escape(scene.workspace.slug)}", html)


def test_who_holds_the_grant_sees_rows_related_columns_and_choices(scene: Scene, marks: list[str]) -> None:
    """The other side: what the strangers' pages lack is on these, so that the walk above looks at something."""
    client = scene.client(scene.everything)
    traces = body_of(client.get("/admin/traces/trace/?window=all"))
    assert scene.workspace.name in traces
    assert told(traces, [str(scene.trace)])
    form = body_of(client.get("/admin/accounts/principal/create/"))
    assert f">{scene.workspace.name}</option>" in form
    seen = "".join(body_of(client.get(url)) for url in pages.every(scene.everything))
    assert set(told(seen, marks)) >= set(marks[:3])
