"""One comparison of a database with what the code declares: roles, rights, policies, functions, owners.

Changes nothing and reads only catalogues, so the owner's `verify_roles` and the application's start-up run the
same one. Web, worker and beat refuse to start on any difference that loosens something.
"""

from collections.abc import Callable, Iterator

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from apps.core.db.verify.code import functions_and_views
from apps.core.db.verify.difference import Difference
from apps.core.db.verify.foreign import foreign_objects
from apps.core.db.verify.policies import policies
from apps.core.db.verify.rights import rights
from apps.core.db.verify.roles import attributes, memberships

FAMILIES: dict[str, Callable[[CursorWrapper], Iterator[Difference]]] = {
    "attributes": attributes,
    "memberships": memberships,
    "rights": rights,
    "policies": policies,
    "functions_and_views": functions_and_views,
    "foreign_objects": foreign_objects,
}

__all__ = ["FAMILIES", "Difference", "differences"]


def differences() -> list[Difference]:
    """Every difference between the connected database and the declarations, family by family.

    One look in one transaction that can write nothing; inside of another, in that one.
    """
    alone = not connection.in_atomic_block
    with transaction.atomic(), connection.cursor() as cursor:
        if alone:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return [found for compare in FAMILIES.values() for found in compare(cursor)]
