"""Who searches, and when."""

import pytest

from apps.core import clock
from tests.support.factories import make_world


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def me(world):
    return world.principal


@pytest.fixture
def frozen():
    with clock.frozen(clock.now()) as at:
        yield at
