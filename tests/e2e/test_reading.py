"""Reading staff pages by HTTP: nothing changes, nothing closed is in them, groups and strangers."""

from typing import Any

import pytest
from django.test import Client

from tests.e2e import pages
from tests.e2e.conftest import SECRET_QUERY, Scene, groups
from tests.support import factories

# Rows that reading may touch: who is signed in.
TOUCHED = {"django_session", "auth_user"}


def _rows(connection: Any) -> dict[str, int]:
    tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    return {
        name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
        for (name,) in tables
        if name not in TOUCHED
    }


def _urls(scene: Scene) -> list[str]:
    trace = f"/admin/traces/trace/{scene.trace}/"
    exports = [f"{url}export/?format={kind}" for url in pages.lists() for kind in ("csv", "jsonl")]
    more = [f"{trace}change/", f"{trace}reverse/{scene.confirmation}/", "/admin/search/?extended=1&s=trace"]
    return [*pages.every(scene.everything), *more, *exports]


def test_reading_twice_changes_nothing(scene: Scene, admin_connection: Any) -> None:
    client = scene.client(scene.everything)
    before = _rows(admin_connection)
    for url in _urls(scene):
        for _ in range(2):
            answer = client.get(url)
            if answer.streaming:
                b"".join(answer.streaming_content)  # type: ignore[attr-defined]
            assert answer.status_code < 500, url
    assert _rows(admin_connection) == before


def test_closed_text_is_in_no_byte_of_any_page_or_export(scene: Scene) -> None:
    for user in (scene.everything, scene.superuser):
        client = scene.client(user)
        for url in _urls(scene):
            answer = client.get(url)
            body = b"".join(answer.streaming_content) if answer.streaming else answer.content  # type: ignore[attr-defined]
            assert SECRET_QUERY.encode() not in body, url


@pytest.mark.parametrize("group", groups())
def test_each_group_reads_its_pages_and_no_others(scene: Scene, group: str) -> None:
    user = factories.make_staff(scene.workspace, groups=(group,))
    client = scene.client(user)
    opened = 0
    for url in pages.every(user):
        status = client.get(url).status_code
        assert status in (200, 403, 404), (url, status)
        opened += status == 200
    assert opened > 5
    traces = client.get("/admin/traces/trace/").status_code
    assert traces == (403 if group == "Operator" else 200)


def test_nobody_is_sent_to_sign_in(scene: Scene) -> None:
    client = Client()
    for url in _urls(scene):
        answer = client.get(url)
        assert answer.status_code == 302, url
        assert "/admin/login/" in answer["Location"], url


def test_no_list_costs_more_queries_for_more_rows(scene: Scene) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    client = scene.client(scene.everything)
    for url in pages.lists():
        with CaptureQueriesContext(connection) as queries:
            client.get(url)
        assert len(queries) <= 20, (url, len(queries))


def test_a_page_of_300_sources_stays_small(scene: Scene) -> None:
    import gzip

    client = scene.client(scene.everything)
    body = client.get(f"/admin/traces/trace/{scene.trace}/change/").content
    assert len(gzip.compress(body)) <= 40 * 1024
