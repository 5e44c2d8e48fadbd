"""One comparison of a database with what the code declares: roles, rights, policies, functions, owners.

Changes nothing and reads only catalogues, so the owner's `verify_roles` and the application's start-up run the
same one. Web, worker and beat refuse to start on any difference that loosens something.
"""

from collections.abc import Callable, Iterator

from django.db import connection
from django.db.backends.utils import CursorWrapper

from apps.core.db.verify.code import foreign_objects, functions_and_views
from apps.core.db.verify.difference import Difference
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
    """Every difference between the connected database and the declarations, family by family."""
    with connection.cursor() as cursor:
        return [found for compare in FAMILIES.values() for found in compare(cursor)]
