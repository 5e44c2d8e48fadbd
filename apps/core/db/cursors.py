"""Cursors for the statements of hot paths."""

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from django.db import connection

Values = Mapping[str, Any] | Sequence[Any]


def session_cursor() -> "psycopg.Cursor[Any]":
    """A cursor of the session's connection that binds on the server and, where settings let it, prepares there.

    Django's own binds on the client: each statement is written out and planned anew every time.
    """
    connection.ensure_connection()
    return psycopg.Cursor(connection.connection)


def run(sql: str, values: Values | None = None, *, binary: bool = True) -> "psycopg.Cursor[Any]":
    """Run one statement of a hot path; its rows come from the cursor. Raises Django's database errors.

    The statement is text of the code's own, the same at every call, so that it is prepared once a connection.
    `binary` says how the rows come over.
    """
    # The driver's types want a literal; statements of the code's own may be put together.
    cursor = session_cursor()
    statement: Any = sql
    with connection.wrap_database_errors:
        cursor.execute(statement, values, binary=binary)
    return cursor
