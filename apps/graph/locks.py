"""Who may write an owner's graph at a time."""

from uuid import UUID

from django.db import connection


def lock_owner(principal_id: UUID) -> None:
    """Wait for the owner's writers: numbers of nodes and terms, and statistics, are given out one by one.

    Held until the transaction ends. Readers never wait.
    """
    _lock(f"graph/{principal_id}")


def lock_repository(principal_id: UUID, repo: str) -> None:
    """Wait for whoever computes the links between pages of that repository."""
    _lock(f"graph/{principal_id}/{repo}")


def _lock(name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [name])
