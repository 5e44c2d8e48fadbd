"""An activation run at the terminal: on with two persons, off with one, each with a password."""

import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.core import policies
from apps.core.db.sessions import staff_session
from apps.observations.policy import KIND
from apps.operations.models import Process
from tests.support import journal
from tests.support.activation import RELEASE, Scene, make_scene
from tests.support.factories import World, make_world

pytestmark = pytest.mark.django_db(transaction=True)
COMMAND = "apps.observations.management.commands.journal_activation"


@pytest.fixture
def world() -> World:
    return make_world()


@pytest.fixture
def scene(world: World, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    settings.RELEASE, settings.ERASURE_BACKUP_DAYS = RELEASE, 30
    monkeypatch.setattr(f"{COMMAND}.getpass.getpass", lambda prompt: "a-long-password")
    Process.objects.all().delete()
    yield make_scene(world, "hash")
    Process.objects.all().delete()


def typed(scene: Scene, step: str, person: Any = None, **options: Any) -> str:
    out = StringIO()
    given = {
        "workspace": scene.world.workspace.slug,
        "person": (person or scene.operator).username,
        "reason": "pilot",
    }
    call_command("journal_activation", step, **(given | options), stdout=out)
    return out.getvalue()


def mode(scene: Scene) -> str:
    with staff_session(scene.operator):
        return str(policies.followed(scene.world.workspace.pk, KIND).document["mode"])


def test_on_with_two_persons_and_a_pilot_that_one_denies(scene: Scene) -> None:
    assert re.search(r"B10:human\s+missing", typed(scene, "show"))
    with pytest.raises(CommandError, match="activation_blocked"):
        typed(scene, "request")
    scene.give_all()
    journal.take_part(scene.world)
    version = re.search(r"version (\w{64})", typed(scene, "request"))
    assert version
    with pytest.raises(CommandError, match="Refused"):
        typed(scene, "approve", seen=version[1])  # by who asked
    typed(scene, "approve", scene.reviewer, seen=version[1])
    assert mode(scene) == "off"
    typed(scene, "enable")
    assert mode(scene) == "hash"
    told = typed(scene, "vouch", scene.reviewer, item="C1", note="two take part", failed=True)
    assert mode(scene) == "off"
    # What is to be done next is told by every step from then on, as commands.
    slug = scene.world.workspace.slug
    for said in (told, typed(scene, "show")):
        assert "The pilot failed at C1, and collection is off. This run does not go on." in said
        assert f"journal_activation examine --workspace {slug} --as" in said
        assert f"journal_activation open --workspace {slug} --as" in said
    with pytest.raises(CommandError, match="D1 and D2 have to prove that it is off"):
        typed(scene, "open", mode="hash")


def test_off_takes_one(scene: Scene) -> None:
    scene.give_all()
    journal.take_part(scene.world)
    scene.request()
    scene.approve()
    scene.enable()
    told = typed(scene, "stop")
    assert mode(scene) == "off"
    assert "Prove that off is off with D1 and D2. To collect again, open another run" in told


def test_a_machine_looks_and_a_person_vouches(scene: Scene) -> None:
    found = typed(scene, "examine")
    assert re.search(r"^A2 (pass|fail)$", found, re.MULTILINE)
    assert "D2 not now" in found
    assert "C2" not in found
    assert "B11 pass" in typed(scene, "vouch", item="B11", note="on-call named")
    assert re.search(r"B11:human\s+passed", typed(scene, "show"))


def test_a_wrong_password_and_a_foreign_workspace_are_refused(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CommandError, match="no run"):
        typed(scene, "show", workspace=make_world().workspace.slug)
    with pytest.raises(CommandError, match="unknown_workspace"):
        typed(scene, "show", workspace="nowhere")
    monkeypatch.setattr(f"{COMMAND}.getpass.getpass", lambda prompt: "wrong")
    with pytest.raises(CommandError, match="belong together"):
        typed(scene, "show")
