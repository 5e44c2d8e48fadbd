"""Documents of the import over HTTP."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from apps.core.schemas import AwareTime, StrictModel, Text
from apps.graph.services.items import PassageItem, SourceType

MAX_ITEMS = 500

Name = Annotated[Text, Field(min_length=1, max_length=256)]
Slug = Annotated[Text, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]


class NodeItem(StrictModel):
    """A passage to import. Scope, repo, type, identity and part name its place; another text there replaces it."""

    identity: (
        int
        | Annotated[Text, Field(min_length=1, max_length=512)]
        | Annotated[
            list[Annotated[Text, Field(min_length=1, max_length=512)]], Field(min_length=2, max_length=2)
        ]
    )
    text: Text
    title: Annotated[Text, Field(max_length=512)] = ""
    type: SourceType = "document"
    repo: Annotated[Text, Field(min_length=1, max_length=300)] = "conn:api"
    updated_at: Annotated[Text, Field(min_length=1, max_length=128)] | None = None
    part: Annotated[int, Field(ge=0, le=100_000)] = 0
    path: Annotated[Text, Field(min_length=1, max_length=512)] | None = None
    number: Annotated[int, Field(ge=1)] | None = None
    url: Annotated[Text, Field(max_length=2048)] | None = None
    state: Name | None = None
    labels: Annotated[list[Name], Field(max_length=50)] = []
    milestone: Name | None = None
    assignee: Name | None = None
    session: Name | None = None
    position: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    event_at: AwareTime | None = None
    language: Annotated[Text, Field(min_length=1, max_length=32)] | None = None
    scope: Slug = "default"
    project: Annotated[Text, Field(min_length=1, max_length=128)] | None = None

    def passage(self) -> PassageItem:
        """The item as the service of the graph takes it."""
        return PassageItem(**self.model_dump(exclude={"labels"}), labels=tuple(self.labels))


class NodesBatch(StrictModel):
    """Up to 500 items. Each is validated and stored by itself; one that is refused sinks no other."""

    items: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MAX_ITEMS)]


class ItemError(BaseModel):
    """Why an item was refused; `pointer` is into the item."""

    code: str
    detail: str = ""
    pointer: str | None = None


class NodeResult(BaseModel):
    """What became of an item. `source_id` is absent where the item cannot be identified as a source."""

    index: int
    result: Literal["created", "updated", "unchanged", "error"]
    node_id: UUID | None = None
    source_id: str | None = None
    error: ItemError | None = None


class NodesBatchResult(BaseModel):
    """A result for each item, in order."""

    results: list[NodeResult]
