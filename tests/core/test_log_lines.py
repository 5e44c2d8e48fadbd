"""Lines of libraries pass the platform's formatter, and what they carry is cut to the template."""

import json
import logging

from memory_platform.logging import formatter


def line(name: str, message: str, *arguments: object) -> dict[str, object]:
    record = logging.LogRecord(name, logging.INFO, __file__, 1, message, arguments, None)
    found: dict[str, object] = json.loads(formatter().format(record))
    return found


def test_server_says_where_it_listens() -> None:
    assert line("gunicorn.error", "Listening at: %s", "http://127.0.0.1:8000")["event"] == (
        "Listening at: http://127.0.0.1:8000"
    )


def test_what_other_libraries_were_given_is_left_out() -> None:
    assert "private" not in json.dumps(line("some.library", "asked for %s", "a private text"))
