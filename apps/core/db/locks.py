"""Advisory locks, held until the transaction ends. A key space is four letters read as a number.

A transaction takes them in the order in which they stand here, so that none waits for another in a ring.
"""

from uuid import UUID

from django.db import connection

POLICY_SPACE = 0x706F6C69  # poli
PRINCIPAL_SPACE = 0x6D70726E  # mprn
POINTER_SPACE = 0x706F696E  # poin
IMPORT_SPACE = 0x696D7072  # impr


class NoTransaction(RuntimeError):
    """A lock was asked for outside of a transaction, where it would be given back at once."""


def lock_policies(kind: str) -> None:
    """Publishing of a kind waits in line, so that a version is checked and followed by one at a time."""
    _lock(POLICY_SPACE, kind)


def lock_principal(principal_id: UUID) -> None:
    """Mutating calls of a principal wait in line."""
    _lock(PRINCIPAL_SPACE, str(principal_id))


def lock_pointer(principal_id: UUID, scope_key: str) -> None:
    """Commands on the pointer to the active profile of a principal and scope set wait in line."""
    _lock(POINTER_SPACE, f"{principal_id}:{scope_key}")


def lock_import(principal_id: UUID) -> None:
    """Imports into a principal wait in line, however long they are, and keep nobody else waiting."""
    _lock(IMPORT_SPACE, str(principal_id))


def _lock(space: int, name: str) -> None:
    if not connection.in_atomic_block:
        raise NoTransaction
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [space, name])
