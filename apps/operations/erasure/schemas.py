"""What erasure says and takes at the API."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field

from apps.core.schemas import StrictModel


class ErasureRequest(StrictModel):
    """Without `confirm` the answer is the plan and nothing happens."""

    confirm: Literal["erase"] | None = None


class PlannedTable(BaseModel):
    table: str
    rows: int = Field(ge=0)


class ErasurePlan(BaseModel):
    """What an erasure would delete now."""

    scope: Literal["all"]
    tables: list[PlannedTable] = Field(
        description="Tables with rows of the caller, in the order of deletion."
    )
    total_rows: int = Field(ge=0)
    held: bool = Field(description="A legal hold stops the erasure.")
    confirm: Literal["erase"] = Field("erase", description="Send this to erase.")


class ErasedTable(BaseModel):
    table: str
    found: int = Field(ge=0)
    deleted: int = Field(ge=0)
    remaining: int = Field(ge=0)


class ExportCopy(BaseModel):
    """A copy outside the platform that has yet to be deleted by its custodian."""

    expires_at: datetime
    custodian_class: str


class Certificate(BaseModel):
    """Counts of an erasure. The checksum is SHA-256 over the canonical JSON of all other members."""

    version: int
    id: UUID
    scope: Literal["all", "journal", "one"]
    actor: Literal["owner", "staff", "replay"]
    status: Literal["running", "incomplete", "complete"]
    reason_code: str | None = Field(None, description="Why it is incomplete; it is tried again.")
    requested_at: datetime
    fence_at: datetime = Field(description="Nothing written before it, or after it, is left.")
    completed_at: datetime | None = None
    tables: list[ErasedTable]
    export_copies: list[ExportCopy]
    backup_days: int | None = Field(None, description="Days that backups live on; null when not declared.")
    audit_entry: UUID | None = None
    checksum: str | None = Field(None, description="Once it is complete.")
