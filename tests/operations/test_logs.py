"""Logs: lines of JSON with a request id, and no text whatever went wrong."""

import io
import json
import logging
from contextlib import contextmanager
from uuid import UUID, uuid4

import psycopg
import pytest
import structlog
from django.db import DatabaseError, connection
from django.test import override_settings
from django.urls import path

from apps.core.db.sessions import principal_session
from memory_platform.logging import ALLOWED, formatter
from memory_platform.urls import urlpatterns as all_routes
from tests.support.factories import make_token, make_world

pytestmark = pytest.mark.django_db

QUERY = "What did user@example.org say about the merger?"


@contextmanager
def captured():
    """Every line that any logger writes, as it would stand in the log."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter())
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    lines: list[dict] = []
    try:
        yield lines
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        lines += [json.loads(line) for line in stream.getvalue().splitlines()]


def fails(request):
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::int", [QUERY])


class Routes:
    urlpatterns = [path("tests/<str:text>", fails), *all_routes]
    handler500 = "memory_platform.errors.server_error"


def test_only_fields_of_the_list_with_numbers_and_codes_are_kept() -> None:
    with captured() as lines:
        structlog.get_logger("apps.tests").info(
            "thing_done", count=3, code="a.b", source=QUERY, query=QUERY, subject="user@example.org"
        )
    (line,) = lines
    assert line["event"] == "thing_done"
    assert (line["count"], line["code"], line["source"]) == (3, "a.b", "refused")
    assert set(line) <= ALLOWED
    assert QUERY not in json.dumps(line)


def test_an_event_is_a_constant() -> None:
    with captured() as lines:
        structlog.get_logger("apps.tests").info(f"asked {QUERY}")
    assert lines[0]["event"] == "refused"


def test_of_an_exception_class_and_places_are_kept() -> None:
    with captured() as lines:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT %s::int", [QUERY])
        except DatabaseError:
            structlog.get_logger("apps.tests").exception("thing_failed")
            logging.getLogger("a.library").exception("it broke")
    assert [line["event"] for line in lines] == ["thing_failed", "library_message"]
    for line in lines:
        assert line["error"] == "DataError"
        assert any("test_logs.py" in frame for frame in line["frames"])
        assert "merger" not in json.dumps(line)


@pytest.mark.parametrize(
    ("logger", "message", "arguments", "event"),
    [
        ("psycopg.pool", "error connecting in %r: %s", ("pool", QUERY), "error connecting in %r: %s"),
        ("httpx", f"GET https://hooks/?q={QUERY}", (), "library_message"),
        ("apps.tests", "constant words", (), "constant words"),
        ("apps.tests", "asked %s", (QUERY,), "asked %s"),
        ("gunicorn.error", "Error handling request %s", (QUERY,), "Error handling request %s"),
    ],
)
def test_of_a_librarys_line_the_template_is_kept(logger, message, arguments, event) -> None:
    with captured() as lines:
        logging.getLogger(logger).warning(message, *arguments)
    (line,) = lines
    assert line["event"] == event
    assert "merger" not in json.dumps(line)


def test_the_web_server_says_where_it_listens() -> None:
    """What it says below a warning is of itself: addresses, processes, signals."""
    with captured() as lines:
        logging.getLogger("gunicorn.error").info("Listening at: %s (%s)", "http://127.0.0.1:80", 7)
        logging.getLogger("gunicorn.error").warning("Listening at: %s (%s)", "http://127.0.0.1:80", 7)
    assert [line["event"] for line in lines] == [
        "Listening at: http://127.0.0.1:80 (7)",
        "Listening at: %s (%s)",
    ]


def test_a_failed_request_leaves_one_line_of_ours_and_no_text(client) -> None:
    client.raise_request_exception = False
    world = make_world()
    token = make_token(world.principal, "search")
    given = uuid4()
    with override_settings(ROOT_URLCONF=Routes), captured() as lines:
        answer = client.get(
            f"/tests/{QUERY}?q={QUERY}",
            HTTP_AUTHORIZATION=f"Bearer {token}",
            HTTP_X_REQUEST_ID=str(given),
        )
    assert answer.status_code == 500
    assert answer["X-Request-ID"] == str(given)
    (line,) = [line for line in lines if line["event"] == "request"]
    assert (line["route"], line["status"], line["method"]) == ("tests/<str:text>", 500, "GET")
    assert (line["request_id"], line["workspace_id"]) == (str(given), str(world.workspace.pk))
    assert line["caller"] == "principal"
    everything = json.dumps(lines)
    for secret in ("merger", "user@example", token, str(world.principal.principal_id)):
        assert secret not in everything
    assert all(found["request_id"] == str(given) for found in lines if found.get("error"))


@pytest.mark.parametrize("given", ["", "who asked what", "x" * 64, "1; DROP TABLE"])
def test_a_request_id_that_is_no_uuid_is_not_taken_over(client, given) -> None:
    with captured() as lines:
        answer = client.get("/health/jobs", HTTP_X_REQUEST_ID=given)
    assert UUID(answer["X-Request-ID"])
    assert not given or given not in json.dumps(lines)


def test_lines_inside_a_session_name_its_workspace() -> None:
    world = make_world()
    with captured() as lines, principal_session(world.principal):
        structlog.get_logger("apps.tests").info("thing_done")
    assert lines[0]["workspace_id"] == str(world.workspace.pk)


def test_a_drivers_message_never_reaches_a_line() -> None:
    with captured() as lines:
        logging.getLogger("django.request").error("%s: %s", "failed", psycopg.Error(QUERY))
    assert "merger" not in json.dumps(lines)
