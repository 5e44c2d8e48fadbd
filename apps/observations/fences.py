"""The locks between writers of the journal and those who shut it.

Writers hold `(journal, all)` and `(journal, workspace)` shared from before they look at policy, switch, gate and
enrolment until their commit. Who switches off, kills, withdraws or erases holds one of them exclusively while it
writes. So once that is committed, nothing that was admitted before it can still become durable.
"""

from uuid import UUID

from django.db import connection

from apps.core.db.cursors import Question
from apps.core.db.locks import NoTransaction
from apps.observations.constants import SPACE

ALL = "all"


def fence(workspace_id: UUID | None = None) -> None:
    """Wait for the writers of a workspace (None: of all), and let none begin until the transaction ends."""
    _require_transaction()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(%s, hashtext(%s))",
            [SPACE, str(workspace_id) if workspace_id else ALL],
        )


def passing_fence(workspace_id: UUID) -> Question[None]:
    """As a writer: wait for a fence that is being put up, and keep others off until the transaction ends.

    What is asked after it sees what was committed behind the fence.
    """
    return Question(
        "SELECT pg_advisory_xact_lock_shared(%s, hashtext(%s)), pg_advisory_xact_lock_shared(%s, hashtext(%s))",
        [SPACE, ALL, SPACE, str(workspace_id)],
        lambda rows: None,
    )


def in_turn(run_id: UUID) -> None:
    """One at a time append evidence to a run, so that each row supersedes the newest there is."""
    _require_transaction()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [SPACE, f"evidence:{run_id}"])


def is_held() -> bool:
    """Whether this transaction holds the fence around all writers exclusively, so that none of them is open."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND granted "
            "AND mode = 'ExclusiveLock' AND classid = %s::oid AND objid = hashtext(%s)::oid)",
            [SPACE, ALL],
        )
        return bool(cursor.fetchone()[0])


def _require_transaction() -> None:
    if not connection.in_atomic_block:
        raise NoTransaction
