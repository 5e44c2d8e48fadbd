"""Breaks a database in one thing, looks at it as its logins do, and takes the breakage back."""

from dataclasses import dataclass
from typing import Any

from apps.core.db.verify import FAMILIES
from apps.core.db.verify.difference import Difference

LOGINS = ("memory_app", "memory_owner")


@dataclass(frozen=True, slots=True)
class Breakage:
    """SQL of the administrator, and the one difference that it makes.

    loosens: whether a process must not start on it. by: the logins that look.
    """

    sql: str
    family: str
    object: str
    loosens: bool = True
    by: tuple[str, ...] = LOGINS

    def __str__(self) -> str:
        return self.sql[:100]


def found_with(admin: Any, *broken: Breakage) -> list[Difference]:
    """What the comparison says inside of a transaction with these breakages, which is rolled back.

    The logins that look must see the same. `admin` is the administrator's connection.
    """
    seen = []
    cursor = admin.cursor()
    cursor.execute("BEGIN")
    try:
        for each in broken:
            cursor.execute(each.sql)
        for login in min((each.by for each in broken), key=len, default=LOGINS):
            cursor.execute(f"SET LOCAL SESSION AUTHORIZATION {login}")
            seen.append([found for compare in FAMILIES.values() for found in compare(cursor)])
            cursor.execute("RESET SESSION AUTHORIZATION")
    finally:
        cursor.execute("ROLLBACK")
    assert all(found == seen[0] for found in seen)
    return seen[0]


def told(found: list[Difference]) -> list[tuple[str, str, bool]]:
    return [(each.family, each.object, each.loosens) for each in found]
