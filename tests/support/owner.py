"""Runs code of commands as the owner of the schema, which the suite's own login is not."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from memory_platform.settings.database import login


@contextmanager
def as_owner() -> Iterator[None]:
    """Django's default connection signs in as `memory_owner`. Only in tests without a wrapping transaction."""
    connection.close()
    before = dict(connection.settings_dict)
    connection.settings_dict.update(login(os.environ["DATABASE_OWNER_URL"], pooled=False))
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.clear()
        connection.settings_dict.update(before)
