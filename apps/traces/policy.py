"""The stored policy of kind `memory`: how interest decays and grows, and how long things are kept."""

from dataclasses import dataclass
from typing import Annotated, Any, cast
from uuid import UUID

from django.db import connection
from django.db.backends.utils import CursorWrapper
from pydantic import Field, model_validator

from apps.core import policies
from apps.core.problems import StateConflict
from apps.core.schemas import StrictModel
from apps.traces.locks import hold_policy

KIND = "memory"

Channel = Annotated[float, Field(gt=0, le=10)]
Days = Annotated[int, Field(ge=1, le=3650)]


class Increments(StrictModel):
    """What reaching a stage adds to a channel; `retrieved` to its own, the others to `usage`."""

    retrieved: Channel = 0.1
    selected: Channel = 0.2
    validated: Channel = 0.5
    used: Channel = 1.0


class Caps(StrictModel):
    retrieved: Channel = 10.0
    usage: Channel = 10.0


class RetentionDays(StrictModel):
    """trace: a trace with all that hangs on it. trace_text: its query and reasons, never longer than the trace.

    activation: an activation row of next to nothing that nobody touched.
    """

    trace: Days = 90
    trace_text: Days = 30
    activation: Days = 30


class MemoryPolicy(StrictModel):
    """The document of kind `memory`. Caps are bounded by the checks of the tables.

    half_life_s: seconds in which activation and learned strength halve. edge_delta: the most that one
    confirmation lends to an edge; edge_cap: the most that an edge may hold.
    """

    half_life_s: Annotated[float, Field(ge=1, le=315_360_000)] = 3600.0
    increments: Increments = Increments()
    caps: Caps = Caps()
    edge_delta: Annotated[float, Field(gt=0, le=0.25)] = 0.25
    edge_cap: Annotated[float, Field(gt=0, le=5)] = 5.0
    retention_days: RetentionDays = RetentionDays()

    @model_validator(mode="after")
    def _text_goes_first(self) -> "MemoryPolicy":
        if self.retention_days.trace_text > self.retention_days.trace:
            raise ValueError("A text is not kept longer than its trace")
        return self


@dataclass(frozen=True, slots=True)
class PolicyInEffect:
    """The policy that rules a workspace now; what is done under it keeps its id."""

    id: UUID
    version: int
    document: MemoryPolicy

    def shown(self) -> dict[str, Any]:
        """What the answer of a search says of it."""
        return {
            "id": str(self.id),
            "version": self.version,
            "half_life_s": self.document.half_life_s,
            "increments": self.document.increments.model_dump(),
        }


def policy_in_effect(workspace_id: UUID) -> PolicyInEffect:
    """One indexed read: the workspace's own, else the default."""
    return _of(policies.version_in_effect(workspace_id, KIND))


def policy_of(policy_id: UUID) -> PolicyInEffect:
    """The policy under which something was done."""
    return _of(policies.version_of(policy_id))


def _of(found: policies.Version) -> PolicyInEffect:
    return PolicyInEffect(found.id, found.version, cast(MemoryPolicy, found.document))


class PolicyFixed(StateConflict):
    """Numbers that stored values depend on cannot change any more; `held_by` says what holds them."""

    code, title = "policy_fixed", "This is fixed while activation or credits exist"


FIXED = ("/half_life_s", "/increments", "/caps", "/edge_delta", "/edge_cap")

Holder = tuple[str, str]
_holders: list[Holder] = []


def register_holder(name: str, function: str) -> None:
    """Something that fixes the numbers: `function(workspace uuid) returns boolean`, null for the default."""
    if (name, function) not in _holders:
        _holders.append((name, function))


def refuse_fixed(change: policies.Change) -> None:
    """Raises PolicyFixed where a changed number is fixed in the workspace, or in one that follows the default."""
    changed = change.changes(*FIXED)
    if not changed:
        return
    with connection.cursor() as cursor:
        held_by = [name for name, function in _holders if _holds(cursor, function, change.workspace_id)]
    if held_by:
        raise PolicyFixed(
            f"{' and '.join(held_by)} were made under these numbers",
            pointer=changed[0].pointer,
            held_by=held_by,
        )


def _holds(cursor: CursorWrapper, function: str, workspace_id: UUID | None) -> bool:
    cursor.execute(f"SELECT {function}(%s)", [workspace_id])
    return bool(cursor.fetchone()[0])


def preview(change: policies.Change) -> dict[str, Any]:
    """What publishing would do to what is there: nothing is decayed, shortened or lengthened by itself."""
    after = cast(MemoryPolicy, change.after)
    return {
        "from_now_on": [field.pointer for field in change.fields],
        "traces_kept_days": after.retention_days.trace,
        "stored_traces_keep_their_expiry": True,
        "texts_older_than_days_go": min(after.retention_days.trace_text, after.retention_days.trace),
    }


def memory_kind() -> policies.Kind:
    """A change takes effect at once: a later one could meet values that fix it by then."""
    return policies.Kind(
        name=KIND,
        title="Memory",
        model=MemoryPolicy,
        default=MemoryPolicy(),
        permission="manage_profiles",
        field_permissions={"/retention_days": "review_retention"},
        refusal=refuse_fixed,
        preview=preview,
        lock=hold_policy,
        scheduled=False,
    )
