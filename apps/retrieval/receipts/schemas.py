"""The document of a native receipt: strict at every depth, numbers finite.

Members at their default are left out, so that a receipt stays small and a later schema may add some. Schema 2 adds
the graph and the pinned channel (a candidate's `hops`, `graph_rank` and `pinned_rank`, four weights of rank fusion),
the steps of a reranker and `include_cross_scope`; a receipt of schema 1 that claims any of it is refused. Schema 3 says
the same in fewer bytes: content hashes are Base64, and an entry of the context is known by its cost alone.

Vectors are arrays in the order that `features.names` (six features) and the formula (weights: the features, or
for rank fusion the channels) say.
"""

import base64
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from apps.core.schemas import AwareTime, Finite, StrictModel, Text
from apps.retrieval.packing import Fidelity, Format, Guidance, Ordering, Representation
from apps.retrieval.policy import CHANNELS, CONTRACTS, FEATURES
from apps.retrieval.schemas import MAX_LIMIT
from apps.retrieval.scoring import RERANK, RERANK_KEEP

SCHEMA = 3
FIRST_CHANNELS = CHANNELS[:2]
"""Those of schema 1."""

Id = Annotated[str, Field(pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
ShortDigest = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{43}$")]
"""The same 32 octets in the Base64 of URLs (RFC 4648 §5), without padding."""
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Place = Annotated[int, Field(ge=1)]
Six = tuple[Share, Share, Share, Share, Share, Share]
Channels = tuple[Finite | None, Finite | None, Place | None, Place | None]
Mode = Literal["search", "context"]
ProfileStatus = Literal["none", "applied", "inapplicable", "request_override"]
AdjustmentKind = Literal[
    "epistemic",
    "kind",
    "temporal_bonus",
    "relevance_cap",
    "current_update",
    "session_decay",
    "rerank_keep",
    "rerank",
]


def _known_contract(value: str) -> str:
    if value not in CONTRACTS:
        raise ValueError("no scorer of that contract is here")
    return value


class QueryHome(StrictModel):
    """Where the text of the query lives: its only home, which may be erased before the receipt."""

    home: Literal["trace", "query_set"]
    id: Id
    name: Text | None = Field(None, description="Of a query in a query set.")


class FiltersRecord(StrictModel):
    """The filters that were set, as `retrieval.schemas.Filters` has them."""

    kinds: tuple[Text, ...] = ()
    subkinds: tuple[Text, ...] = ()
    types: tuple[Text, ...] = ()
    repository: Text | None = None
    path_prefix: Text | None = None
    state: Text | None = None
    labels: tuple[Text, ...] = ()
    milestone: Text | None = None
    assignee: Text | None = None
    since: AwareTime | None = None
    until: AwareTime | None = None
    valid_since: AwareTime | None = None
    valid_until: AwareTime | None = None
    known_at: AwareTime | None = None


class RequestRecord(StrictModel):
    """What was asked, but for the words."""

    query: QueryHome
    query_identity: Digest = Field(description="HMAC-SHA-256 of the normalised query, the principal's key.")
    mode: Mode
    scopes: tuple[Text, ...] | None = Field(description="Sorted and distinct; null = all.")
    corpus: Literal["all", "shared"] = "all"
    filters: FiltersRecord = FiltersRecord()
    limit: Annotated[int, Field(ge=1, le=MAX_LIMIT)]
    reference_time: AwareTime
    known_at: AwareTime | None = None
    epistemic_mode: Literal["default", "explicit"] = "default"
    min_score: Finite | None = None
    max_per_source: Place | None = None
    include_cross_scope: bool = False

    @model_validator(mode="after")
    def _normalised(self) -> Self:
        if self.scopes is not None and list(self.scopes) != sorted(set(self.scopes)):
            raise ValueError("scopes are sorted and distinct")
        return self


class PolicyRecord(StrictModel):
    """The rules: the stored scoring policy by id and hash, and those of its constants that replay needs."""

    id: Id | None
    sha256: Digest
    version: Count
    formula: Literal["weighted", "rank_fusion"]
    fusion_k: Place
    retrieval_mode: Literal["hybrid"] = "hybrid"
    packing: Text | None = Field(None, description="Version of the packing; null = no context was packed.")
    query_analysis: Text | None = Field(None, description="Version of an installed analysis; null = none is.")


class FeaturesRecord(StrictModel):
    """What the features were made with."""

    contract: Annotated[str, AfterValidator(_known_contract)]
    names: tuple[Text, ...] = FEATURES
    embedder: Text | None
    lexical: Text = Field(description="Version of the analyser.")
    extensions: dict[Text, Text] = {}

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.names != FEATURES:
            raise ValueError("the features are those of the contract, in its order")
        return self


class CorpusRecord(StrictModel):
    digest: Digest


class WeightsRecord(StrictModel):
    """One distinct weight vector; base and multipliers apart from what was applied."""

    base: tuple[Finite, ...]
    multipliers: tuple[Finite, ...]
    applied: tuple[Finite, ...]


class AdjustmentRecord(StrictModel):
    """A step after the formula, in the order of application."""

    kind: AdjustmentKind
    coefficient: Finite
    source: Id | None = None

    @model_validator(mode="after")
    def _with_its_source(self) -> Self:
        if (self.kind == "session_decay") != (self.source is not None):
            raise ValueError("just an inherited score names its source")
        return self


class CandidateRecord(StrictModel):
    """A row of the answer. An inherited one has the features, raw values and steps of its source."""

    node_id: Id
    content_hash: Digest | ShortDigest = Field(
        description="HMAC-SHA-256 of title, LF, text under the principal's key: Base64 of URLs, until schema 2 hex."
    )
    features: Six
    raw: Channels = Field(description="bm25, cosine, lexical rank, semantic rank; null = not returned.")
    hops: Annotated[int, Field(ge=0, le=2)] | None = Field(
        None, description="0 = named by the query; null = the graph did not return it."
    )
    graph_rank: Place | None = None
    pinned_rank: Place | None = None
    channels: Annotated[int, Field(ge=0, le=4)] = Field(description="That returned the row itself.")
    score: Finite
    adjustments: tuple[AdjustmentRecord, ...] = ()
    weights: Count = Field(0, description="Index into the weights.")
    representation: Representation = "full"
    token_cost: Count | None = None
    in_context_stated: bool | None = Field(
        None, alias="in_context", description="Until schema 2; since then an entry is what has a cost."
    )
    has_content: bool = True

    @model_validator(mode="after")
    def _entry(self) -> Self:
        if self.representation == "reference" and (self.has_content or not self.in_context):
            raise ValueError("a reference is an entry without content")
        return self

    @property
    def in_context(self) -> bool:
        return self.token_cost is not None

    @property
    def content_digest(self) -> bytes:
        """The 32 octets of the content hash."""
        written = self.content_hash
        return bytes.fromhex(written) if len(written) == 64 else base64.urlsafe_b64decode(f"{written}=")

    @property
    def reranked(self) -> bool:
        return bool(self.adjustments) and self.adjustments[-1].kind == RERANK


LATER = frozenset({"hops", "graph_rank", "pinned_rank"})
RERANKING = [RERANK_KEEP, RERANK]


def _claims_later(candidate: CandidateRecord) -> bool:
    """Whether a candidate has what schema 1 has not."""
    return not LATER.isdisjoint(candidate.model_fields_set) or candidate.reranked


def _said_as_in(schema: int, candidate: CandidateRecord) -> bool:
    """Whether content hash and place in the context are written as the schema has them."""
    if schema < 3:
        return len(candidate.content_hash) == 64 and bool(candidate.in_context_stated) == candidate.in_context
    return len(candidate.content_hash) == 43 and candidate.in_context_stated is None


def _steps_in_place(candidate: CandidateRecord) -> bool:
    """Whether the two steps of a reranker come last and together, or not at all."""
    kinds = [step.kind for step in candidate.adjustments]
    kept = kinds[:-2] if kinds[-2:] == RERANKING else kinds
    return not any(kind in RERANKING for kind in kept)


class PackingRecord(StrictModel):
    """How the context was packed, so that it can be rendered again from the texts of its nodes."""

    ordering: Ordering = "balanced"
    format: Format = "auditable"
    guidance: Guidance = "off"
    min_fidelity: Fidelity = "reference"
    token_budget: Place
    tokenizer: Text
    used_tokens: Count
    order: tuple[Count, ...] = Field(description="Entries as they stand, as indexes into the candidates.")
    tiers: tuple[Count, Count, Count, Count] = Field(
        description="Of how many of them each tier is: instructions, pinned, multi-path, rest."
    )


class ProfileRecord(StrictModel):
    id: Id | None = None
    status: ProfileStatus = "none"
    reason: Text | None = None


class ChannelRecord(StrictModel):
    name: Literal["lexical", "semantic", "graph", "pinned"]
    status: Literal["ok", "empty", "failed"]
    count: Count
    milliseconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    method: Text | None = None
    coverage: Share | None = None
    error: Text | None = None


class ExplainRecord(StrictModel):
    """Of how many, and what was left out why."""

    scored: Count
    excluded: dict[Text, Count] = {}
    errors: dict[Text, Text] = Field({}, description="Extensions that failed; the rows stand without them.")
    query_groups: Count
    groups_used: Count


class ReceiptDocument(StrictModel):
    """A native receipt. That its scores and order follow from it is replay's to say."""

    schema_version: Literal[1, 2, 3]
    receipt_id: Id
    recorded_at: AwareTime
    request: RequestRecord
    policy: PolicyRecord
    features: FeaturesRecord
    corpus: CorpusRecord
    weights: Annotated[tuple[WeightsRecord, ...], Field(min_length=1)]
    candidates: Annotated[tuple[CandidateRecord, ...], Field(max_length=MAX_LIMIT)]
    omitted: Count = Field(description="Scored candidates that did not become rows.")
    profile: ProfileRecord = ProfileRecord()
    context_sha256: Digest | None = None
    packing: PackingRecord | None = None
    channels: tuple[ChannelRecord, ...]
    explain: ExplainRecord

    @property
    def weight_names(self) -> tuple[str, ...]:
        if self.policy.formula == "weighted":
            return FEATURES
        return FIRST_CHANNELS if self.schema_version == 1 else CHANNELS

    @model_validator(mode="after")
    def _of_its_schema(self) -> Self:
        if self.schema_version == 1 and (
            self.features.contract != CONTRACTS[0]
            or self.request.include_cross_scope
            or any(_claims_later(candidate) for candidate in self.candidates)
        ):
            raise ValueError("a receipt claims what its schema does not have")
        if not all(_said_as_in(self.schema_version, candidate) for candidate in self.candidates):
            raise ValueError("a candidate says it as another schema does")
        return self

    @model_validator(mode="after")
    def _packed(self) -> Self:
        given = {self.policy.packing is None, self.context_sha256 is None, self.packing is None}
        if len(given) > 1:
            raise ValueError("a context has a packing, its options and a hash, or is none")
        inside = [index for index, candidate in enumerate(self.candidates) if candidate.in_context]
        order = self.packing.order if self.packing else ()
        if sorted(order) != inside or (self.packing and sum(self.packing.tiers) != len(order)):
            raise ValueError("the entries of a context are the candidates in it")
        return self

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if len({candidate.node_id for candidate in self.candidates}) != len(self.candidates):
            raise ValueError("a node is one candidate")
        if any(candidate.weights >= len(self.weights) for candidate in self.candidates):
            raise ValueError("a candidate points to weights that are not there")
        for candidate in self.candidates:
            if (candidate.hops is None) != (candidate.graph_rank is None):
                raise ValueError("what the graph returned has hops and a rank")
            if candidate.adjustments and not _steps_in_place(candidate):
                raise ValueError("a reranker's two steps come last and together")
        length = len(self.weight_names)
        for vector in self.weights:
            if {len(vector.base), len(vector.multipliers), len(vector.applied)} != {length}:
                raise ValueError("a weight vector has a value for each name")
        return self
