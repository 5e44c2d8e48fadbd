"""What a process sends to the database, whichever cursor sends it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg


@contextmanager
def sent() -> Iterator[list[tuple[str, Any]]]:
    """Collect (SQL, values) of every statement run in the block, those of Django's cursors as they were bound.

    Django's own capture does not see the cursors that bind on the server.
    """
    collected: list[tuple[str, Any]] = []
    execute = psycopg.Cursor.execute

    def collect(cursor: Any, query: Any, params: Any = None, **more: Any) -> Any:
        collected.append((str(query), params))
        return execute(cursor, query, params, **more)

    psycopg.Cursor.execute = collect  # type: ignore[method-assign, assignment]
    try:
        yield collected
    finally:
        psycopg.Cursor.execute = execute  # type: ignore[method-assign]


def calls_for_holds(admin: Any, status: str) -> int:
    """How often one reading of a status function asks whether a hold covers a row. `admin` is the administrator's."""
    asked = (
        "SELECT coalesce(sum(calls), 0) FROM pg_stat_xact_user_functions WHERE funcname = 'operations_held'"
    )
    with admin.transaction():
        admin.execute("SET LOCAL track_functions = 'all'")
        admin.execute(f"SELECT * FROM {status}()").fetchall()
        return int(admin.execute(asked).fetchone()[0])


@contextmanager
def trips() -> Iterator[list[str]]:
    """Collect what is waited for in the block, an entry a round trip: a statement, a pipeline, a commit.

    The BEGIN of a transaction goes ahead of its first statement and is not counted, nor is what a pipeline sends.
    """
    waited: list[str] = []
    execute, leave, commit = psycopg.Cursor.execute, psycopg.Pipeline.__exit__, psycopg.Connection.commit

    def counted(cursor: Any, query: Any, params: Any = None, **more: Any) -> Any:
        if cursor.connection._pipeline is None:
            waited.append(str(query))
        return execute(cursor, query, params, **more)

    def left(pipeline: Any, *error: Any) -> None:
        waited.append("pipeline")
        leave(pipeline, *error)

    def committed(connection: Any) -> None:
        waited.append("commit")
        commit(connection)

    psycopg.Cursor.execute = counted  # type: ignore[method-assign, assignment]
    psycopg.Pipeline.__exit__ = left  # type: ignore[method-assign, assignment]
    psycopg.Connection.commit = committed  # type: ignore[method-assign, assignment]
    try:
        yield waited
    finally:
        psycopg.Cursor.execute = execute  # type: ignore[method-assign]
        psycopg.Pipeline.__exit__ = leave  # type: ignore[method-assign]
        psycopg.Connection.commit = commit  # type: ignore[method-assign]
