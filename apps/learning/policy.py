"""The gate: the stored policy of kind `gate`, which says what promotable evidence must at least ask for."""

from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from apps.core import policies
from apps.learning.schemas import GatePolicy

KIND = "gate"


@dataclass(frozen=True, slots=True)
class GateInEffect:
    """The gate that rules a workspace, and the stored version that it is."""

    id: UUID
    version: int
    document: GatePolicy


def gate_in_effect(workspace_id: UUID) -> GateInEffect:
    """One indexed read: the workspace's own, else the default."""
    return _of(policies.version_in_effect(workspace_id, KIND))


def gate_of(policy_id: UUID) -> GateInEffect:
    """The gate under which something was asked."""
    return _of(policies.version_of(policy_id))


def _of(found: policies.Version) -> GateInEffect:
    return GateInEffect(found.id, found.version, cast(GatePolicy, found.document))


def preview(change: policies.Change) -> dict[str, Any]:
    """What publishing would do: nothing that is stored is judged again, but promotion asks the new gate."""
    after = cast(GatePolicy, change.after)
    return {
        "from_now_on": [field.pointer for field in change.fields],
        "stored_evaluations_keep_their_gate": True,
        "evidence_kept_days": after.retention_days,
    }


def gate_kind() -> policies.Kind:
    """What the registry of policies is told at start-up."""
    return policies.Kind(
        name=KIND,
        title="Gate",
        model=GatePolicy,
        default=GatePolicy(),
        permission="manage_profiles",
        field_permissions={"/retention_days": "review_retention"},
        preview=preview,
    )
