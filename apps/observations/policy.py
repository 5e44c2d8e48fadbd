"""The stored policy of kind `collection`: what the journal of a workspace may keep, and for how long.

The law: what a stored value or a setting does not clearly say keeps less. An unknown mode is `off`, text days other
than 1..90 are hashes only. Of the deployment's ceiling and the workspace's mode the weaker rules.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, cast
from uuid import UUID

from django.db.models import QuerySet
from pydantic import Field

from apps.core import policies
from apps.core.models import StoredPolicy
from apps.core.schemas import StrictModel
from apps.observations.constants import LEAST_RECORD_HOURS, RECORD_HOURS, TEXT_DAYS
from apps.observations.exceptions import ActivationNeeded
from apps.observations.fences import fence
from apps.observations.models.activation import ActivationRun, RunState

KIND = "collection"

Mode = Literal["off", "hash", "platform-text"]
MODES: tuple[Mode, ...] = ("off", "hash", "platform-text")
"""From the weakest to the strongest."""


class CollectionPolicy(StrictModel):
    """The document of kind `collection`.

    text_days: days of 24 hours that a text is kept, null for the longest (90). record_hours: life of a record.
    collect_private: whether searches of the principal's own corpus are observed, too (never their text).
    """

    mode: Mode = "off"
    text_days: Annotated[int, Field(ge=1, le=TEXT_DAYS)] | None = None
    record_hours: Annotated[int, Field(ge=LEAST_RECORD_HOURS, le=RECORD_HOURS)] = RECORD_HOURS
    collect_private: bool = False


@dataclass(frozen=True, slots=True)
class Collecting:
    """What a stored document says, read so that nothing unclear keeps more."""

    mode: Mode
    text_days: int | None
    record_hours: int
    collect_private: bool


def mode_of(value: object) -> Mode:
    """A mode by its exact spelling; anything else is `off`."""
    return next((mode for mode in MODES if mode == value), "off")


def weaker(one: Mode, other: Mode) -> Mode:
    return min(one, other, key=MODES.index)


def text_days_of(value: object) -> int | None:
    """Days as stored: null is the longest, a whole number of 1..90 itself, all else None (hashes only)."""
    if value is None:
        return TEXT_DAYS
    whole = isinstance(value, int) and not isinstance(value, bool)
    return cast(int, value) if whole and 1 <= cast(int, value) <= TEXT_DAYS else None


def collecting(document: Mapping[str, Any]) -> Collecting:
    """A stored document as it rules."""
    hours = document.get("record_hours", RECORD_HOURS)
    whole = isinstance(hours, int) and not isinstance(hours, bool)
    sound = whole and LEAST_RECORD_HOURS <= hours <= RECORD_HOURS
    return Collecting(
        mode=mode_of(document.get("mode")) if sound else "off",
        text_days=text_days_of(document.get("text_days")),
        record_hours=hours if sound else RECORD_HOURS,
        collect_private=document.get("collect_private") is True,
    )


def generations(workspace_id: UUID) -> QuerySet[StoredPolicy]:
    """The versions of a workspace; a version's number is the generation of what was collected under it."""
    return policies.policy_versions(workspace_id, KIND)


@dataclass(frozen=True, slots=True)
class Switched:
    """When collection of a workspace was switched: on for the first time, on last, off last."""

    first_enabled_at: datetime | None = None
    enabled_at: datetime | None = None
    disabled_at: datetime | None = None


def switched(workspace_id: UUID) -> Switched:
    """Read off the versions, in any session that sees the workspace's policies."""
    return _switched(reversed(generations(workspace_id)))


def first_enabled(workspace_ids: Collection[UUID]) -> dict[UUID, datetime]:
    """When collection began, for those of the workspaces where it ever did; one read."""
    versions = StoredPolicy.objects.filter(kind=KIND, workspace_id__in=workspace_ids)
    by_workspace: dict[UUID, list[StoredPolicy]] = {key: [] for key in workspace_ids}
    for version in versions.order_by("version"):
        by_workspace[cast(UUID, version.workspace_id)].append(version)
    began = {key: _switched(found).first_enabled_at for key, found in by_workspace.items()}
    return {key: at for key, at in began.items() if at is not None}


def _switched(versions: Iterable[StoredPolicy]) -> Switched:
    """Of the versions of one workspace, oldest first."""
    first = enabled = disabled = None
    on = False
    for version in versions:
        now_on = collecting(version.document).mode != "off"
        if now_on and not on:
            first, enabled = first or version.effective_from, version.effective_from
        elif on and not now_on:
            disabled = version.effective_from
        on = now_on
    return Switched(first, enabled, disabled)


def preview(change: policies.Change) -> dict[str, Any]:
    """What publishing does to what is there: nothing. New rows follow it, old ones keep their deadlines."""
    after = cast(CollectionPolicy, change.after)
    return {
        "mode": after.mode,
        "text_days": after.text_days or TEXT_DAYS,
        "record_hours": after.record_hours,
        "from_now_on": [field.pointer for field in change.fields],
        "stored_rows_keep_their_deadlines": True,
    }


def refuse_stronger(change: policies.Change) -> None:
    """A stronger mode is published by a run that is being enabled in this very transaction, and by nothing else.

    Raises ActivationNeeded. Once enabling is committed its run names the generation, so it opens no second door.
    """
    before, after = cast(CollectionPolicy, change.before).mode, cast(CollectionPolicy, change.after).mode
    if MODES.index(after) <= MODES.index(before):
        return
    if change.workspace_id is None:
        raise ActivationNeeded
    enabling = ActivationRun.objects.filter(
        workspace_id=change.workspace_id, state=RunState.ENABLED, generation=None, mode=after
    )
    if not enabling.exists():
        raise ActivationNeeded


def collection_kind() -> policies.Kind:
    """Always in effect at once, behind the fence: what was admitted under the old version is not written after."""
    return policies.Kind(
        name=KIND,
        title="Collection",
        model=CollectionPolicy,
        default=CollectionPolicy(),
        permission="operate_collection",
        field_permissions={"/text_days": "review_retention", "/record_hours": "review_retention"},
        refusal=refuse_stronger,
        preview=preview,
        lock=fence,
        scheduled=False,
    )
