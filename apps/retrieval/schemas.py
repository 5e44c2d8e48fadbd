"""What goes into a retrieval and what comes out; `retrieve.retrieve` joins the two."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from apps.graph.embedders import QueryEmbedding

MAX_LIMIT = 50  # rows of an answer, and so of a receipt

Corpus = Literal["all", "shared"]
EpistemicMode = Literal["default", "explicit"]


@dataclass(frozen=True, slots=True)
class Filters:
    """Restrictions of a search, all of which a row must meet, in every channel and before every cap.

    `since`, `until` bound the event time (else the update time) half-open; `valid_since`, `valid_until` the
    validity window, which must overlap; `known_at` leaves out later rows; all `labels` must be there.
    """

    kinds: tuple[str, ...] = ()
    subkinds: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    repository: str | None = None
    path_prefix: str | None = None
    state: str | None = None
    labels: tuple[str, ...] = ()
    milestone: str | None = None
    assignee: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    valid_since: datetime | None = None
    valid_until: datetime | None = None
    known_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RetrievalRequest:
    """One search. `embedding` comes from `apps.graph.embedders.embed_query`, made before any transaction."""

    query: str
    embedding: QueryEmbedding
    reference_time: datetime
    scopes: tuple[str, ...] | None = None
    corpus: Corpus = "all"
    limit: int = 10
    filters: Filters = field(default_factory=Filters)
    epistemic_mode: EpistemicMode = "default"
    min_score: float | None = None
    max_per_source: int | None = None
    include_cross_scope: bool = False
    outside: tuple[str, ...] = ()
    """Scopes to stay out of; set by retrieval itself, for hints."""
    only: tuple[UUID, ...] = ()
    """Nodes to look at alone; set by retrieval itself, to explain."""


@dataclass(frozen=True, slots=True)
class ChannelReport:
    """How one channel went.

    status: `ok`; `empty` when nobody has stored its material yet (counts 0, has not failed); `failed` with
    `error`, a stable code. `method` is `exact` or `hnsw` for the semantic channel; `coverage` the share of
    live rows with a vector.
    """

    name: Literal["lexical", "semantic", "graph", "pinned"]
    status: Literal["ok", "empty", "failed"]
    count: int = 0
    milliseconds: float = 0.0
    method: str | None = None
    coverage: float | None = None
    error: str | None = None


# Features and Raw are not frozen: a search makes hundreds, and freezing triples the price of making one.
@dataclass(slots=True)
class Features:
    """The six features in [0, 1] as they were used. Never changed once they are made."""

    semantic: float
    lexical: float
    graph: float
    recency: float
    salience: float
    confidence: float


@dataclass(slots=True)
class Raw:
    """Values of the channels before they became features; None where a channel did not return the row. Never
    changed once they are made."""

    bm25: float | None = None
    cosine: float | None = None
    lexical_rank: int | None = None
    semantic_rank: int | None = None
    hops: int | None = None
    graph_rank: int | None = None
    pinned_rank: int | None = None


@dataclass(frozen=True, slots=True)
class Adjustment:
    """A factor (or cap) that was applied to a score, in the order of application."""

    kind: str
    coefficient: float
    source: UUID | None = None


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a row came from; what source identity is made of. None where the node lacks it."""

    repo: str | None
    type: str | None
    identity: Any
    version: str | None
    part: int = 0
    content_source: str = "index"


@dataclass(frozen=True, slots=True)
class Folded:
    """A row of the same entity that the best-ranked one stands for."""

    node_id: UUID
    provenance: Provenance
    score: float
    status: Literal["latest", "superseded"] | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the ranked axis. `content` is the whole text; whoever renders it cuts."""

    node_id: UUID
    rank: int
    score: float
    path_score: int
    features: Features
    raw: Raw
    adjustments: tuple[Adjustment, ...]
    kind: str
    subkind: str | None
    title: str
    content: str
    provenance: Provenance
    epistemic: str
    scope: str
    path: str | None
    slug: str | None
    url: str | None
    number: int | None
    state: str | None
    labels: tuple[str, ...]
    milestone: str | None
    assignee: str | None
    session: str | None
    position: int | None
    event_at: datetime | None
    updated_at: datetime
    shared: bool
    pinned: bool = False
    standing: bool = False
    others: tuple[Folded, ...] = ()
    version_status: Literal["latest", "superseded"] | None = None
    withdrawn: Literal["archived", "superseded"] | None = None


@dataclass(frozen=True, slots=True)
class Weights:
    """Base weights, multipliers and what was applied, by feature (or, for rank fusion, by channel)."""

    base: Mapping[str, float]
    multipliers: Mapping[str, float]
    applied: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class PolicyReference:
    """The stored policy of kind `scoring` that ruled, and what replay needs of it."""

    id: UUID | None
    sha256: str
    version: int
    formula: str
    fusion_k: int


@dataclass(frozen=True, slots=True)
class Retrieval:
    """The answer of a retrieval, before it is recorded or rendered.

    Attributes:
        rows: at most `limit`, best first, folded.
        scored: candidates that got a score; `omitted` of them did not become rows or members of one.
        excluded: counts by reason of candidates that were left out after the channels.
        why_empty: filled when there are no rows.
        hints: rows of scopes outside the request, apart; `rank` is among themselves.
        query_analysis, reranker: versions of those that were used.
        errors: stable codes by name of an extension that failed, or of the hints; the rows stand without it.
    """

    rows: tuple[Row, ...]
    scored: int
    omitted: int
    channels: tuple[ChannelReport, ...]
    weights: Weights
    policy: PolicyReference
    corpus_digest: str
    embedder: str | None
    analyser: str
    query_groups: int
    groups_used: int
    excluded: Mapping[str, int] = field(default_factory=dict)
    filters_unmatched: tuple[str, ...] | None = None
    why_empty: Mapping[str, Any] | None = None
    hints: tuple[Row, ...] = ()
    query_analysis: str | None = None
    reranker: str | None = None
    errors: Mapping[str, str] = field(default_factory=dict)

    @property
    def partial(self) -> bool:
        """Whether a channel failed, so that the answer may lack rows."""
        return any(channel.status == "failed" for channel in self.channels)
