"""Cursors for the statements of hot paths."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import psycopg
from django.db import connection

Values = Mapping[str, Any] | Sequence[Any]
Rows = list[tuple[Any, ...]]
T = TypeVar("T")


@dataclass(slots=True)
class Question(Generic[T]):
    """A statement that is to be sent together with others, and what its rows say once it was."""

    sql: str
    values: Values | None
    read: Callable[[Rows], T]
    rows: Rows | None = None

    @property
    def answer(self) -> T:
        assert self.rows is not None, "it has not been sent"
        return self.read(self.rows)


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


def ask(*questions: Question[Any]) -> None:
    """Send statements in their order and in one round trip, each as `run` does.

    One sees what those before it did, and what was committed until it begins. Raises Django's database errors: of
    the first that fails, after which none ran.
    """
    connection.ensure_connection()
    session = connection.connection
    with connection.wrap_database_errors:
        with session.pipeline():
            sent = [psycopg.Cursor(session).execute(one.sql, one.values, binary=True) for one in questions]
        for one, cursor in zip(questions, sent, strict=True):
            one.rows = cursor.fetchall() if cursor.description else []
