"""The tables, policies and functions that records live by are not taken away while a record is there.

A rollback of the journal is a mode that is off. What was written keeps its deadline, and needs its row policies to be
hidden from it on and its functions to be deleted by it.
"""

from typing import Any

from django.core.management import CommandError
from django.db import connections

FIRST_APART = "0010"
"""Migrations from here on are of activation: taking them back leaves records with all that they need."""
REFUSAL = (
    "Refused: the journal still has records. Switch it off and let expiry run; `manage.py journal_activation examine "
    "--item D4` passes when the last one is gone, at the latest 2160 hours after it was observed."
)


def refuse_dropping(plan: list[tuple[Any, bool]], using: str, **more: Any) -> None:
    """Receiver of `pre_migrate`. Raises CommandError, before anything is taken back."""
    taken_back = (migration for migration, backwards in plan if backwards)
    if any(each.app_label == "observations" and each.name < FIRST_APART for each in taken_back):
        with connections[using].cursor() as cursor:
            # As the owner, whose policy hides nothing; to any other login the table is closed, which refuses as well.
            cursor.execute("SELECT EXISTS (SELECT FROM observations_observation)")
            if cursor.fetchone()[0]:
                raise CommandError(REFUSAL)
