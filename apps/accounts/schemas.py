"""Documents of accounts that cross the API."""

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field


class Me(BaseModel):
    """Who a credential speaks for."""

    kind: Literal["principal", "staff"]
    via: Literal["token", "jwt", "session"]
    scopes: list[str]
    subject: str = Field(description="The principal's subject, or the staff user's name.")
    display_name: str
    principal_id: UUID | None = None
    workspace: str | None = Field(None, description="Slug of the principal's workspace.")
