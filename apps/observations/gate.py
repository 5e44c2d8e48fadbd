"""Whether this database is the one for which the journal is open."""

from django.db import DatabaseError, connection, transaction
from psycopg import errors

from apps.observations.exceptions import JournalClosed


def is_open() -> bool:
    """Compares the recorded identity with the live one; what cannot be read counts as another. Outside of sessions,
    as the application's own login."""
    return _says_open("SELECT observations_gate_open()")


def is_open_for_staff() -> bool:
    """The same, in a staff session."""
    return _says_open("SELECT observations_gate_open_for_staff()")


def _says_open(sql: str) -> bool:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql)
            return bool(cursor.fetchone()[0])
    except DatabaseError as error:
        # The owner may not read the cluster's identity: then nobody can tell a copy.
        if isinstance(error.__cause__, errors.InsufficientPrivilege):
            return False
        raise


def require_open() -> None:
    """Raises JournalClosed."""
    if not is_open():
        raise JournalClosed
