"""Who a transaction acts as. One identity a transaction; see `sessions`."""

from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID


@dataclass(frozen=True, slots=True)
class PrincipalIdentity:
    """An owner of private data, with the shared principal of its workspace."""

    role: ClassVar[str] = "memory_api"
    principal_id: UUID
    workspace_id: UUID
    shared_principal_id: UUID | None = None

    def settings(self) -> dict[str, str]:
        return {
            "memory.principal_id": str(self.principal_id),
            "memory.workspace_id": str(self.workspace_id),
            "memory.shared_principal_id": str(self.shared_principal_id or ""),
        }


@dataclass(frozen=True, slots=True)
class StaffIdentity:
    """A staff user. What it sees follows from its grants on workspaces, never from being a superuser."""

    role: ClassVar[str] = "memory_staff"
    user_id: int

    def settings(self) -> dict[str, str]:
        return {"memory.user_id": str(self.user_id)}


@dataclass(frozen=True, slots=True)
class MaintenanceIdentity:
    """Runs the narrow maintenance functions; reads no rows."""

    role: ClassVar[str] = "memory_maintenance"

    def settings(self) -> dict[str, str]:
        return {}


@dataclass(frozen=True, slots=True)
class MonitorIdentity:
    """Runs the status functions only."""

    role: ClassVar[str] = "memory_monitor"

    def settings(self) -> dict[str, str]:
        return {}


Identity = PrincipalIdentity | StaffIdentity | MaintenanceIdentity | MonitorIdentity
