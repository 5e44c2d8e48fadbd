"""Whether this database is the one for which the journal is open."""

from django.db import connection

from apps.observations.exceptions import JournalClosed


def is_open() -> bool:
    """Compares the recorded identity with the live one; what cannot be read counts as another. Outside of sessions,
    as the application's own login."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT observations_gate_open()")
        return bool(cursor.fetchone()[0])


def require_open() -> None:
    """Raises JournalClosed."""
    if not is_open():
        raise JournalClosed
