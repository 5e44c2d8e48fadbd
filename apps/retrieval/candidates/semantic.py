"""The semantic channel: cosine over half-precision vectors, exact for small owners, HNSW beyond."""

from dataclasses import dataclass
from typing import Any, Literal

from apps.core.db.wire import halfvec, uuids
from apps.graph.embedders import QueryEmbedding

from .filters import Restriction
from .run import Channel
from .statistics import Statistics

EXACT_ROWS = 20_000
"""Vectors of the visible owners up to which the exact scan is taken; the graph policy's default."""
EXACT_SHARE = 0.01
"""Share of the index under which it is taken too: the walk would meet mostly others' rows."""
EF_SEARCH, MAX_SCAN_TUPLES, FETCHED = 200, 100_000, 120

Method = Literal["exact", "hnsw"]

# Vectors have length 1, so the inner product orders as the cosine does, at half the price a row; the best are
# then measured exactly. Ordered by what is computed from the product, so that no index can answer.
_EXACT = """
SELECT v.node_id, v.vec, -(v.vec::halfvec({dims}) <#> %(query)s::halfvec({dims})) AS near
FROM graph_vector v{filter}{condition} v.embedder_id = {embedder} AND v.principal_id = ANY(%(owners)s)
  AND v.vec IS NOT NULL
ORDER BY near DESC LIMIT %(fetched)s"""
_WALK = """
SELECT v.node_id, v.vec FROM graph_vector v{filter}{condition} v.embedder_id = {embedder}
  AND v.principal_id = ANY(%(owners)s)
ORDER BY v.vec::halfvec({dims}) <=> %(query)s::halfvec({dims}) LIMIT %(fetched)s"""
_JOINED = "JOIN graph_node n ON n.id = v.node_id"
# Of a walk few rows are looked at, each by its key: joined, all nodes of the owner were read for them.
_LOOKED_UP = "CROSS JOIN LATERAL (SELECT * FROM graph_node WHERE id = v.node_id OFFSET 0) n"
_STATEMENT = """
WITH nearest AS MATERIALIZED ({nearest}),
measured AS MATERIALIZED (
  SELECT node_id, 1 - (vec::halfvec({dims}) <=> %(query)s::halfvec({dims})) AS cosine FROM nearest)
SELECT node_id, cosine, extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000
FROM measured ORDER BY cosine DESC, node_id LIMIT %(depth)s
"""
# Row policies name the owners a second time, so that the planner takes few rows to be theirs, and would read and sort
# every vector of an owner of a hundred thousand. Where nothing may be sorted, only the index gives the order.
WALKING = (
    "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), "
    f"set_config('hnsw.ef_search', '{EF_SEARCH}', true), "
    f"set_config('hnsw.max_scan_tuples', '{MAX_SCAN_TUPLES}', true), set_config('enable_sort', 'off', true)",
)
WALKED = ("SELECT set_config('enable_sort', 'on', true)",)


@dataclass(frozen=True, slots=True)
class SemanticPlan:
    """How the channel will be answered."""

    method: Method
    rows: int


def choose(statistics: Statistics, *, exact_rows: int = EXACT_ROWS) -> SemanticPlan:
    """The method by the number of visible vectors, and their share of the whole index."""
    rows = statistics.vectors()
    small = rows <= exact_rows or rows < EXACT_SHARE * statistics.index_vectors
    return SemanticPlan("exact" if small else "hnsw", rows)


def channel(method: Method, embedding: QueryEmbedding, restriction: Restriction, depth: int) -> Channel:
    """The statement with the settings under which it is to be planned and run."""
    asked = statement(method, embedding, restriction, depth)
    return Channel(asked) if method == "exact" else Channel(asked, before=WALKING, after=WALKED)


def statement(
    method: Method, embedding: QueryEmbedding, restriction: Restriction, depth: int
) -> tuple[str, dict[str, Any]]:
    """SQL and values; rows are (node id, cosine, milliseconds), best first.

    Embedder and dimensions are written out: a partial index answers only to a constant.
    """
    assert embedding.vector is not None
    form, node = (_EXACT, _JOINED) if method == "exact" else (_WALK, _LOOKED_UP)
    join = restriction.join(node, looked_up=method == "hnsw")
    dims = int(embedding.vector.shape[0])
    nearest = form.format(
        dims=dims,
        embedder=int(embedding.embedder_id or 0),
        filter=join,
        condition=" AND" if join else " WHERE",
    )
    values = {
        "query": halfvec(embedding.vector),
        "owners": uuids(restriction.owners),
        "depth": depth,
        "fetched": max(FETCHED, depth + depth // 5),
    }
    return _STATEMENT.format(nearest=nearest, dims=dims), values | restriction.values
