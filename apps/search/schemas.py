"""The request of `POST /v1/search`."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from apps.core import clock
from apps.core.schemas import AwareTime, Finite, StrictModel, Text
from apps.core.scopes import ScopeSet
from apps.core.text import trim
from apps.graph.services.items import SourceType
from apps.retrieval.packing import DEFAULT_BUDGET, MAX_BUDGET, Fidelity, Format, Guidance, Ordering
from apps.retrieval.schemas import MAX_LIMIT, Filters

MAX_QUERY = 4096
MAX_PREFIX_BYTES = 64

Mode = Literal["search", "scan", "fetch"]


def _folder(value: str) -> str:
    parts = value.split("/")
    good = value.endswith("/") and not value.startswith("/") and not {"", ".", ".."} & set(parts[:-1])
    if not good or len(value.encode()) > MAX_PREFIX_BYTES:
        raise PydanticCustomError(
            "bad_prefix", "A prefix is a relative folder that ends in /, without . or .., of at most 64 bytes"
        )
    return value


Name = Annotated[Text, Field(min_length=1, max_length=256)]
Names = Annotated[list[Name], Field(max_length=50)]
Multiplier = Annotated[Finite, Field(ge=0.25, le=4)]


class SearchFilters(StrictModel):
    """All must match.

    `since` and `until` bound the event time, else the update time: since ≤ time < until. `valid_since` and
    `valid_until` name a window that the validity must overlap. `known_at` leaves out what was stored later.
    """

    kinds: Annotated[list[Literal["episodic", "structural", "passage"]], Field(max_length=3)] = []
    subkinds: Names = []
    types: Annotated[list[SourceType], Field(max_length=10)] = []
    repository: Name | None = None
    path_prefix: Annotated[Text, AfterValidator(_folder)] | None = Field(
        None, description="A folder such as docs/guides/; documents and wiki pages only."
    )
    state: Name | None = None
    labels: Annotated[Names, Field(description="All must be there.")] = []
    milestone: Name | None = None
    assignee: Name | None = None
    since: AwareTime | None = None
    until: AwareTime | None = None
    valid_since: AwareTime | None = None
    valid_until: AwareTime | None = None
    known_at: AwareTime | None = None

    def lowered(self) -> Filters:
        """As retrieval takes them."""
        given: dict[str, Any] = self.model_dump()
        lowered: dict[str, Any] = {}
        for name, value in given.items():
            lowered[name] = tuple(value) if isinstance(value, list) else value
        return Filters(**lowered)


class SearchRequest(StrictModel):
    """A search of the memory. `node_ids` make it a fetch; without a query it is a scan of what is new."""

    query: Annotated[Text, Field(max_length=MAX_QUERY)] = ""
    node_ids: Annotated[list[UUID], Field(min_length=1, max_length=50)] | None = None
    scopes: ScopeSet | None = Field(None, description="Null: all of the principal's.")
    corpus: Literal["all", "shared"] = Field("all", description="shared: only what the workspace shares.")
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT, description="Counts folded entities.")] = 10
    filters: SearchFilters = SearchFilters()
    ranking_multipliers: Annotated[
        dict[
            Literal["semantic", "lexical", "graph", "recency", "salience", "confidence", "pinned"], Multiplier
        ],
        Field(description="By feature; under a policy of rank fusion by channel. Absent ones are 1."),
    ] = {}
    include_content: bool = Field(
        False, description="Inline the live text of up to 5 documents and 5 wiki pages."
    )
    graph_expand: bool = Field(False, description="Also walk the mentions of the ranked wiki pages.")
    graph_hops: Annotated[int, Field(ge=1, le=2)] = 2
    use_memory: bool = Field(False, description="Order the graph axis by learned strength within a hop.")
    include_context: bool = Field(
        False, description="Also pack the rows into a text for a model. Of a search alone."
    )
    token_budget: Annotated[int, Field(ge=1, le=MAX_BUDGET, description="Of the whole context.")] = (
        DEFAULT_BUDGET
    )
    min_fidelity: Fidelity = Field(
        "reference", description="The least that may enter the context: full keeps references out."
    )
    context_ordering: Ordering = Field("balanced", description="What comes first within a tier.")
    context_format: Format = "auditable"
    context_guidance: Guidance = Field("off", description="Lines that tell the reader how to read it.")
    reference_time: AwareTime | None = Field(None, description="Default: now.")
    explain: bool = Field(False, description="Show the features of each row.")
    epistemic_mode: Literal["default", "explicit"] = "default"
    min_score: Annotated[Finite, Field(ge=0)] | None = None
    max_per_source: Annotated[int, Field(ge=1, le=50)] | None = None
    include_cross_scope: bool = Field(
        False, description="Also give up to 5 hints out of the principal's scopes that were not named."
    )

    @model_validator(mode="after")
    def _window(self) -> "SearchRequest":
        asked = self.filters
        for since, until in ((asked.since, asked.until), (asked.valid_since, asked.valid_until)):
            if since is not None and until is not None and since >= until:
                raise PydanticCustomError("bad_window", "A window begins before it ends")
        return self

    @field_validator("include_context")
    @classmethod
    def _of_a_search(cls, value: bool, info: ValidationInfo) -> bool:
        given = info.data
        if value and (given.get("node_ids") is not None or not trim(given.get("query", ""))):
            raise PydanticCustomError("no_context", "A context is packed of a search, which needs a query")
        return value

    @property
    def mode(self) -> Mode:
        if self.node_ids is not None:
            return "fetch"
        return "search" if trim(self.query) else "scan"

    @property
    def scope_set(self) -> tuple[str, ...] | None:
        """Normalised: sorted, without duplicates."""
        return tuple(sorted(set(self.scopes))) if self.scopes is not None else None

    def kept(self, reference_time: datetime) -> dict[str, Any]:
        """What a trace keeps of it: every field but the query, with the defaults that applied."""
        document = self.model_dump(mode="json", exclude={"query"})
        return document | {
            "scopes": list(self.scope_set) if self.scope_set is not None else None,
            "reference_time": clock.iso(reference_time),
        }
