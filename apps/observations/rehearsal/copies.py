"""A copy of a database beside it, and this process's own connection there."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from apps.core.db import provision
from apps.observations.rehearsal.disposable import RehearsalRefused, is_flagged, mark

SUFFIX = "_restored"
ELSEWHERE = "postgres"


@contextmanager
def copy_of(name: str, admin_url: str) -> Iterator[str]:
    """The name of a copy with the rights that an operator gives it; dropped at the end, whatever happens.

    `admin_url` is of a login that may create databases and roles. Nobody may be connected to the original, and
    this process is not while it is copied. Raises RehearsalRefused.
    """
    copy = f"{name}{SUFFIX}"
    # The administrator's own connection would keep its database from being copied.
    away = {"dbname": ELSEWHERE} if conninfo_to_dict(admin_url).get("dbname") in (name, copy) else {}
    with psycopg.connect(make_conninfo(admin_url, **away), autocommit=True) as admin:
        _drop_left_over(admin, copy)
        _disconnect()
        try:
            admin.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(copy), sql.Identifier(name))
            )
        except errors.ObjectInUse:
            raise RehearsalRefused("Refused: somebody else is connected to this database.") from None
        try:
            mark(admin, copy)
            with psycopg.connect(make_conninfo(admin_url, dbname=copy), autocommit=True) as there:
                provision.provision(there, copy)
            yield copy
        finally:
            _drop(admin, copy)


@contextmanager
def connected_to(name: str) -> Iterator[None]:
    """Everything that this process asks of the database, it asks of another one of the same server."""
    own = connection.settings_dict["NAME"]
    _disconnect()
    connection.settings_dict["NAME"] = name
    try:
        yield
    finally:
        _disconnect()
        connection.settings_dict["NAME"] = own


def _drop_left_over(admin: Any, copy: str) -> None:
    """Of a rehearsal that was killed. Another database of that name stays, and nothing is copied."""
    if admin.execute("SELECT FROM pg_database WHERE datname = %s", [copy]).fetchone() is None:
        return
    if not is_flagged(admin, copy):
        raise RehearsalRefused(f"Refused: there is a database {copy}, and it is not marked as disposable.")
    _drop(admin, copy)


def _drop(admin: Any, copy: str) -> None:
    admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(copy)))


def _disconnect() -> None:
    own: Any = connection  # PostgreSQL's, which has a pool
    own.close()
    own.close_pool()
