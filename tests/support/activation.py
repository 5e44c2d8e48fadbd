"""An activation run with all the evidence that enabling needs."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User

from apps.core import clock, policies
from apps.core.db.sessions import staff_session
from apps.observations.activation.items import ITEMS, Item, of_groups
from apps.observations.models import ActivationRun
from apps.observations.models.activation import Part, Result
from apps.observations.policy import KIND
from apps.observations.services import activation, evidence
from apps.operations.models import Destination, Process
from tests.support.factories import World, make_staff

RELEASE = "0123abcd"


@dataclass(frozen=True)
class Scene:
    """A run, who operates it and who reviews it."""

    world: World
    run_id: UUID
    operator: User
    reviewer: User

    def run(self) -> ActivationRun:
        with staff_session(self.operator):
            return ActivationRun.objects.get(pk=self.run_id)

    def give(self, code: str, result: str = "pass", **more: Any) -> None:
        """Evidence of every part of an item, as a probe and a second person would leave it."""
        with staff_session(self.operator):
            run = ActivationRun.objects.get(pk=self.run_id)
            for part in ITEMS[code].parts:
                human = part == Part.HUMAN
                given = {
                    "measured": {},
                    "method": "attestation" if human else "probe.1",
                    "observed_at": clock.now(),
                    "actor_id": self.reviewer.pk if human else self.operator.pk,
                } | more
                evidence.record(run=run, item=ITEMS[code], part=part, result=Result(result), **given)

    def give_all(self, groups: str = "AB", without: str | None = None) -> None:
        for item in of_groups(groups):
            if item.code != without:
                self.give(item.code)

    def request(self) -> ActivationRun:
        with staff_session(self.operator):
            return activation.request_enabling(run_id=self.run_id, reason="pilot")

    def approve(self, user: User | None = None) -> ActivationRun:
        version = self.run().approval_hash
        with staff_session(user or self.reviewer):
            return activation.approve(run_id=self.run_id, version=version, reason="seen")

    def enable(self) -> ActivationRun:
        with staff_session(self.operator):
            return activation.enable(run_id=self.run_id, reason="pilot")

    def stop(self) -> ActivationRun:
        with staff_session(self.operator):
            return activation.stop(run_id=self.run_id, reason="enough")

    def examine(self, item: str, **more: Any) -> Any:
        return activation.examine(run_id=self.run_id, item=item, user_id=self.operator.pk, **more)

    def vouch(self, item: str, user: User | None = None, result: str = "pass") -> Any:
        return activation.vouch(
            run_id=self.run_id, item=item, result=result, note="seen", user_id=(user or self.reviewer).pk
        )


def make_scene(world: World, mode: Any = "platform-text") -> Scene:
    operator = make_staff(world.workspace, "operate_collection")
    reviewer = make_staff(world.workspace, "review_retention")
    with staff_session(operator):
        Destination.objects.create(
            workspace=world.workspace,
            name="on-call",
            kind="email",
            address="on-call@example.org",
            confirmed_at=clock.now(),
            confirmed_by=operator,
        )
        run = activation.open_run(workspace_id=world.workspace.pk, mode=mode, reason="pilot")
    return Scene(world, run.pk, operator, reviewer)


def items(groups: str = "AB") -> list[Item]:
    return list(of_groups(groups))


def mode(scene: Scene) -> str:
    """What the workspace's policy says now."""
    with staff_session(scene.operator):
        return str(policies.followed(scene.world.workspace.pk, KIND).document["mode"])


def process(
    kind: str = "web", seen: timedelta = timedelta(), release: str = RELEASE, **known: Any
) -> Process:
    """A process that knows of workspaces what `known` says, heard of `seen` from now."""
    report = {"observations": {"ceiling": "platform-text", "killed": False, "workspaces": known}}
    return Process.objects.create(
        kind=kind,
        release=release,
        host="h",
        pid=1,
        started_at=clock.now(),
        seen_at=clock.now() + seen,
        report=report,
    )


def knows(scene: Scene, mode: str, generation: int) -> dict[str, Any]:
    return {str(scene.world.workspace.pk): {"mode": mode, "generation": generation}}
