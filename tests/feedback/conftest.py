"""A workspace with a principal, whose memory holds a few rows, and its calls."""

import pytest

from tests.support.api import Api
from tests.support.factories import make_world
from tests.support.labels import fill


@pytest.fixture
def world():
    return make_world()


@pytest.fixture
def me(world):
    fill(world.principal)
    return world.principal


@pytest.fixture
def api(me):
    return Api(me)
