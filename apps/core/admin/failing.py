"""Parts of a page that fail alone: what cannot be read says so in its place, and the rest stands."""

from collections.abc import Callable
from typing import Any

import structlog
from django.db import DatabaseError, transaction

from apps.core import ui

logger = structlog.get_logger(__name__)


def part(name: str, read: Callable[[], Any]) -> Any:
    """What `read` gives, inside of the page's session; a notice where the database refuses. Nothing of the error is
    shown, and the log knows the part's name and the class of the failure alone."""
    try:
        with transaction.atomic():
            return read()
    except DatabaseError as error:
        return not_measured(name, error)


def not_measured(name: str, error: Exception) -> ui.Notice:
    """The notice in the place of a part that could not be read, once it is in the log."""
    logger.error("page_part_failed", part=name, code=type(error).__name__)
    return ui.Notice("bad", "Not measured: this part could not be read. The operators find it in the log.")
