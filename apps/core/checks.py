"""Start-up refuses a database that gives more than declared.

Web, worker and beat call `refuse_unsafe_database` before they serve; `manage.py check --database default` shows
the same as system checks.
"""

from collections.abc import Callable, Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, Warning, register

from apps.core.db.verify import Difference, differences
from memory_platform.environment import environment


class UnsafeDatabase(RuntimeError):
    """The database or the login gives more than declared; the message names each difference."""


Refusal = Callable[[], str | None]

_refusals: list[Refusal] = []


def register_refusal(refusal: Refusal) -> None:
    """Have `refusal()` asked before a process serves: why it must not, with what to do, or None."""
    if refusal not in _refusals:
        _refusals.append(refusal)


@register(Tags.database)
def database_as_declared(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """core.E001 for every difference that loosens something, core.W001 for the others."""
    # The owner's commands make the database what it should be; only the application's login is held to it.
    if not databases or "default" not in databases or environment().memory_database_login == "owner":
        return []
    return [_message(difference) for difference in differences()]


def _message(difference: Difference) -> CheckMessage:
    if difference.loosens:
        hint = "manage.py verify_roles lists all; provision_roles and migrate mend them."
        return Error(str(difference), hint=hint, id="core.E001")
    return Warning(str(difference), id="core.W001")


def refuse_unsafe_database() -> None:
    """Raises UnsafeDatabase when any difference loosens something or an app refuses. Called before a process serves."""
    found = [str(difference) for difference in differences() if difference.loosens]
    if found:
        raise UnsafeDatabase("the database is not as declared:\n  " + "\n  ".join(found))
    for refusal in _refusals:
        if why := refusal():
            raise UnsafeDatabase(why)
