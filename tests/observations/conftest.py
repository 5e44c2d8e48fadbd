"""A workspace with a journal that is on, and an enrolled principal with something to find."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.graph.tasks import embed
from apps.observations.tasks import erase
from tests.support import journal
from tests.support.factories import World, make_world


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> Iterator[None]:
    """Nothing that another test remembered, no broker, and an erasure file of its own."""
    monkeypatch.setattr(embed, "apply_async", lambda *args, **more: None)
    monkeypatch.setattr(erase, "delay", lambda certificate_id: None)
    settings.ERASURE_FILE = tmp_path / "erasures.jsonl"
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
