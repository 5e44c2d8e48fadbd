"""A workspace with a journal that is on, and an enrolled principal with something to find."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import journal
from tests.support.factories import World, make_world


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    journal.forget()
    yield
    journal.forget()


@pytest.fixture
def world(settings: Any) -> World:
    journal.configure(settings)
    return make_world()


@pytest.fixture
def on(world: World, owner_connection: Any) -> World:
    """The mode is on, and the world's principal takes part."""
    journal.set_policy(owner_connection, world.workspace.pk)
    journal.take_part(world)
    return world
