"""A running installation, shared by the tests that only use it."""

from collections.abc import Iterator

import pytest

from tests.support.stack import Stack, running_stack


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """An installation after its first start, with the demo memory. Tests add to it and break nothing."""
    with running_stack(demo=True) as stack:
        yield stack
