"""Migration operations for what Django does not model: row policies, owner foreign keys, functions, triggers.

All are reversible, and all are data: `manifest` reads them back from the migrations to verify a database.
"""

from apps.core.db.operations.code import SEARCH_PATH, AddTrigger, DefineFunction, DefineView
from apps.core.db.operations.constraints import AddCheck, AddOwnerForeignKey, BindOwner
from apps.core.db.operations.policies import ApplyRowPolicy

__all__ = [
    "SEARCH_PATH",
    "AddCheck",
    "AddOwnerForeignKey",
    "AddTrigger",
    "ApplyRowPolicy",
    "BindOwner",
    "DefineFunction",
    "DefineView",
]
