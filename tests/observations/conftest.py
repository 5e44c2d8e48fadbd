"""A workspace with a journal that is on, and an enrolled principal with something to find."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.graph.tasks import embed
from apps.observations.tasks import erase
from apps.operations.models import Process
from tests.support import journal
from tests.support.activation import RELEASE, Scene, make_scene
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


@pytest.fixture
def scene(world: World, settings: Any) -> Iterator[Scene]:
    """An activation run without any evidence, of a release that is known."""
    settings.RELEASE, settings.ERASURE_BACKUP_DAYS = RELEASE, 30
    Process.objects.all().delete()
    yield make_scene(world)
    Process.objects.all().delete()


@pytest.fixture
def ready(scene: Scene) -> Scene:
    """All evidence is there, and one principal takes part."""
    scene.give_all()
    journal.take_part(scene.world)
    return scene


@pytest.fixture
def enabled(ready: Scene) -> Scene:
    ready.request()
    ready.approve()
    ready.enable()
    return ready
