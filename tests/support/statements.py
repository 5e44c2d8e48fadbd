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
