"""Lists of the admin: read by keyset, uncounted, scoped to grants, exported page by page."""

import csv
import io
import json
import re
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import Principal
from apps.core.admin.export import cell, csv_line
from tests.support import factories

LIST = "/admin/accounts/principal/"
pytestmark = pytest.mark.django_db


def _client(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def _subjects(html: str) -> list[str]:
    return re.findall(
        r"token:row-(\d+)", "".join(re.findall(r"<tr class=.data-row.>.*?</tr>", html, re.DOTALL))
    )


def _rows(number: int) -> tuple[Any, Any]:
    workspace = factories.make_workspace()
    for at in range(number):
        factories.make_principal(workspace, f"token:row-{at:04}")
    return workspace, factories.make_staff(workspace, "operate_collection")


def _link(html: str, words: str) -> str | None:
    found = re.search(r'href="([^"]+)">[^<]*' + words, html)
    return found[1].replace("&amp;", "&") if found else None


def _unique(numbers: list[str]) -> list[str]:
    return list(dict.fromkeys(numbers))


def test_a_list_of_more_pages_never_says_fewer_rows_than_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the planner expects of a young table is a guess."""
    _, user = _rows(60)
    for expected, words in (
        (1, "more than 50 rows"),
        (None, "more than 50 rows"),
        (4711, "about 4\u202f711"),
    ):
        monkeypatch.setattr("apps.core.admin.changelist.estimated_rows", lambda rows, n=expected: n)
        assert f"<span>{words}</span>" in _client(user).get(LIST).content.decode()


def test_pages_go_on_and_back_without_a_count_or_an_offset() -> None:
    _, user = _rows(120)
    client = _client(user)
    seen: list[str] = []
    url: str | None = LIST
    pages = 0
    while url:
        with CaptureQueriesContext(connection) as queries:
            html = client.get(url).content.decode()
        for query in queries.captured_queries:
            assert "OFFSET" not in query["sql"]
            assert "COUNT(" not in query["sql"]
        seen += _unique(_subjects(html))
        following = _link(html, "Older")
        url = LIST + following if following else None
        pages += 1
    assert pages == 3
    assert seen == [f"{at:04}" for at in reversed(range(120))]
    back = _link(html, "← Newer")
    assert back
    assert _unique(_subjects(client.get(LIST + back).content.decode()))[-1] == "0020"


def test_a_cursor_of_another_user_or_filter_shows_the_first_page_and_says_so() -> None:
    workspace, user = _rows(60)
    following = _link(_client(user).get(LIST).content.decode(), "Older")
    assert following
    other = _client(factories.make_staff(workspace, "operate_collection"))
    html = other.get(LIST + following).content.decode()
    assert "not known here" in html
    assert _unique(_subjects(html))[0] == "0059"
    filtered = _client(user).get(f"{LIST}{following}&state=enabled").content.decode()
    assert "not known here" in filtered


def test_a_staff_user_without_a_grant_finds_nothing_of_that_workspace() -> None:
    workspace, user = _rows(3)
    stranger = factories.make_staff(factories.make_workspace(), "operate_collection", "view_traces")
    client = _client(stranger)
    assert _subjects(client.get(LIST).content.decode()) == []
    hidden = factories.make_principal(workspace, "token:row-9999")
    assert client.get(f"{LIST}{hidden.principal_id}/change/").status_code == 404
    invented = client.get(f"{LIST}{UUID(int=7)}/change/")
    shown = client.get(f"{LIST}{hidden.principal_id}/change/")
    assert invented.content == shown.content
    assert "row-9999" not in client.get(f"{LIST}?q=token:row").content.decode()
    exported = b"".join(client.get(f"{LIST}export/?format=csv").streaming_content)  # type: ignore[attr-defined]
    assert b"row-" not in exported
    found = client.get(f"/admin/search/?extended=1&s={hidden.principal_id}").content.decode()
    assert "Nothing found" in found
    assert workspace.name not in client.get("/admin/").content.decode()
    assert _subjects(_client(user).get(LIST).content.decode())


def test_related_columns_are_shown_and_not_blank() -> None:
    workspace, user = _rows(1)
    assert f">{workspace.name}<" in _client(user).get(LIST).content.decode()


def test_the_current_workspace_narrows_lists_but_opens_every_link() -> None:
    first, user = _rows(2)
    second = factories.make_workspace()
    from django.contrib.auth.models import Group

    from apps.core.db.sessions import staff_session

    with staff_session(factories.make_superuser()):
        user.groups.add(Group.objects.get(name=f"{second.slug}: Operator"))
    other = factories.make_principal(second, "token:row-7777")
    client = _client(user)
    assert client.get("/admin/workspace/").status_code == 405
    client.post("/admin/workspace/", {"workspace": first.slug, "next": LIST})
    html = client.get(LIST).content.decode()
    assert "7777" not in html
    assert client.get(f"{LIST}{other.principal_id}/change/").status_code == 200
    client.post("/admin/workspace/", {"workspace": "", "next": "https://elsewhere.example/"})
    assert "7777" in client.get(LIST).content.decode()


def test_the_switcher_leads_to_no_other_site() -> None:
    _, user = _rows(0)
    answer = _client(user).post("/admin/workspace/", {"workspace": "", "next": "https://elsewhere.example/"})
    assert answer["Location"] == "/admin/"


def test_an_export_streams_every_row_of_the_filter_and_no_closed_column() -> None:
    workspace, user = _rows(1100)
    client = _client(user)
    answer = client.get(f"{LIST}export/?format=csv&q=token:row")
    assert answer.streaming
    assert "no-store" in answer["Cache-Control"]
    rows = list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))  # type: ignore[attr-defined]
    assert len(rows) == 1100
    assert len({row["id"] for row in rows}) == 1100
    assert set(rows[0]) == set(Principal.export_columns)
    assert "hash_key" not in rows[0]
    lines = b"".join(client.get(f"{LIST}export/?format=jsonl&q=token:row-00").streaming_content)  # type: ignore[attr-defined]
    documents = [json.loads(line) for line in lines.decode().splitlines()]
    assert len(documents) == 100
    assert documents[0]["created_at"].endswith("Z")
    assert client.get(f"{LIST}export/?format=xlsx").status_code == 404
    assert workspace


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_formula_cells_become_text(start: str) -> None:
    assert cell(f"{start}cmd|' /C calc'!A0").startswith("'")
    assert csv_line([f"{start}1"]).strip().strip('"').startswith("'")


def test_numbers_stay_numbers() -> None:
    assert cell(-3) == "-3"
    assert cell(None) == ""
    assert cell({"a": 1}) == '{"a": 1}'


def test_a_page_is_opened_by_get_alone_and_append_only_objects_have_no_form() -> None:
    workspace, user = _rows(1)
    principal = factories.make_principal(workspace, "token:row-0000")
    client = _client(user)
    page = f"{LIST}{principal.principal_id}/change/"
    assert client.post(page, {"subject": "x"}).status_code == 403
    assert client.get(f"{LIST}add/").status_code == 403
    assert client.post(f"{LIST}{principal.principal_id}/delete/", {"post": "yes"}).status_code == 403
    assert 'name="subject"' not in client.get(page).content.decode()


def test_an_empty_list_says_which_single_filter_hides_its_rows() -> None:
    _, user = _rows(3)
    client = _client(user)
    both = client.get(f"{LIST}?state=disabled&q=token:row-0001").content.decode()
    assert "Without state: disabled" in both
    assert "Without search" not in both
    assert client.get(f"{LIST}?q=token:row-0001").content.decode().count("data-row") == 1
    neither = client.get(f"{LIST}?state=disabled&q=nobody").content.decode()
    assert "No single one of them hides rows" in neither
    assert "Clear the filters" in neither
    found = re.search(r'href="([^"]*)">Without state', both)
    assert found
    assert "token:row-0001" in client.get(LIST + found[1].replace("&amp;", "&")).content.decode()
