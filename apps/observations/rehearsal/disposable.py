"""Databases that may be lost: marked by a person, empty when they were."""

from typing import Any

from psycopg import sql

FLAG = "disposable"
FLAGGED = "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s"


class RehearsalRefused(RuntimeError):
    """A rehearsal cannot be held here; the message says why."""


def flag(owner: Any, name: str) -> None:
    """Mark the connected database, whose name was typed. What holds records of anybody is not disposable.

    Raises RehearsalRefused.
    """
    if name != owner.info.dbname:
        raise RehearsalRefused("Type the name of the database that DATABASE_URL names, with --name.")
    if is_flagged(owner, name):
        return
    if owner.execute("SELECT EXISTS (SELECT FROM observations_observation)").fetchone()[0]:
        raise RehearsalRefused("Refused: this database has records.")
    mark(owner, name)


def mark(connection: Any, name: str) -> None:
    """Write the mark on a database, as its owner or the administrator."""
    connection.execute(
        sql.SQL("COMMENT ON DATABASE {} IS {}").format(sql.Identifier(name), sql.Literal(FLAG))
    )


def is_flagged(connection: Any, name: str) -> bool:
    """Whether a database of the connected server carries the mark."""
    found = connection.execute(FLAGGED, [name]).fetchone()
    return found is not None and found[0] == FLAG


def require_disposable(owner: Any) -> None:
    """Raises RehearsalRefused."""
    if not is_flagged(owner, owner.info.dbname):
        raise RehearsalRefused("Refused: this database is not marked as disposable.")
