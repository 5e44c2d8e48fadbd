"""The stored policy of kind `memory`: how interest decays and grows, and how long things are kept."""

from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from apps.core import policies
from apps.core.schemas import StrictModel

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
    row = policies.current_policy(workspace_id, KIND)
    return PolicyInEffect(row.id, row.version, MemoryPolicy.model_validate(row.document))


def policy_of(policy_id: UUID) -> PolicyInEffect:
    """The policy under which something was done."""
    row = policies.policy_by_id(policy_id)
    return PolicyInEffect(row.id, row.version, MemoryPolicy.model_validate(row.document))
