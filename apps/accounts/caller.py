"""The verified caller of a request: who it is, how it was verified, what its credential allows."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from apps.core.db.identity import PrincipalIdentity, StaffIdentity

SCOPES = (
    "search",
    "feedback",
    "learning",
    "memory",
    "sources",
    "curation",
    "export",
    "erase",
    "monitor",
    "evidence",
)


@dataclass(frozen=True, slots=True)
class Caller:
    """Attached to every request as `request.caller` (None when anonymous)."""

    identity: PrincipalIdentity | StaffIdentity
    via: Literal["token", "jwt", "session"]
    scopes: frozenset[str]
    token_id: UUID | None = None
    speaks_for_user: bool = False

    @property
    def kind(self) -> Literal["principal", "staff"]:
        return "principal" if isinstance(self.identity, PrincipalIdentity) else "staff"
