"""Erasing one trace, by its owner."""

from uuid import UUID

from django.db import connection

from apps.traces.exceptions import LegalHold, UnknownTrace


def erase_trace(*, trace_id: UUID) -> None:
    """Delete a trace of the session's principal with all that hangs on it; its active credits are taken back.

    Raises UnknownTrace, or LegalHold while a hold covers it.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT traces_erase_own(%s)", [trace_id])
        (result,) = cursor.fetchone()
    if result == "absent":
        raise UnknownTrace
    if result == "held":
        raise LegalHold
