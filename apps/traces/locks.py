"""Advisory locks of the feedback memory, held until the transaction ends.

Order, everywhere: the policy (shared), the principal (`core.db.locks.lock_principal`), the idempotency key,
activation rows by ascending source id, strength rows by ascending edge key. There is no other order, so there is
no deadlock.
"""

from apps.core.db import cursors
from apps.core.db.cursors import Question

POLICY = "pg_advisory_xact_lock(1836085100, 0)"
POLICY_SHARED = "pg_advisory_xact_lock_shared(1836085100, 0)"
"""SQL. One lock for the memory policies of all workspaces (key space `mpol`): publishing is rare and waits."""


def sharing_policy() -> Question[None]:
    """Asked before a trace is saved: the policy that is read next stays in effect until the trace is committed."""
    return Question(f"SELECT {POLICY_SHARED}", None, lambda rows: None)


def share_policy() -> None:
    """The same, asked at once."""
    cursors.ask(sharing_policy())


def hold_policy() -> None:
    """Taken before a policy is published: no writer of activation or credits is under way, none begins."""
    cursors.run(f"SELECT {POLICY}")
