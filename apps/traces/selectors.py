"""Reads of the feedback memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.traces.models import PathEdge, TraceSource, Use
from apps.traces.paths import Edge


@dataclass(frozen=True, slots=True)
class SavedSource:
    """A source of a trace as it was saved, with the stage that it reached."""

    source_id: str
    position: int
    provenance: dict[str, Any]
    axes: list[str]
    rank: int | None
    graph_rank: int | None
    hop: int | None
    score: float | None
    components: dict[str, Any]
    location: str
    folded_under: int | None
    node_id: UUID | None
    stage: int
    times: tuple[datetime | None, datetime | None, datetime | None]
    paths: tuple[tuple[Edge, ...], ...]


def saved_sources(trace_id: UUID, source_ids: Sequence[str] | None = None) -> list[SavedSource]:
    """The sources of a trace in their order, all or those named, with stages and paths; three queries."""
    rows = TraceSource.objects.filter(trace_id=trace_id).order_by("position")
    uses = Use.objects.filter(trace_id=trace_id)
    if source_ids is not None:
        rows, uses = rows.filter(source_id__in=source_ids), uses.filter(source_id__in=source_ids)
    sources = list(rows)
    reached = {use.source_id: use for use in uses} if sources else {}
    on_graph = [row.id for row in sources if "graph" in row.axes]
    paths = _paths(on_graph) if on_graph else {}
    return [_saved(row, reached.get(row.source_id), paths.get(row.id, ())) for row in sources]


def _saved(row: TraceSource, use: Use | None, paths: tuple[tuple[Edge, ...], ...]) -> SavedSource:
    return SavedSource(
        source_id=row.source_id,
        position=row.position,
        provenance=provenance_of(row),
        axes=list(row.axes),
        rank=row.rank,
        graph_rank=row.graph_rank,
        hop=row.hop,
        score=row.score,
        components=row.components,
        location=row.location,
        folded_under=row.folded_under,
        node_id=row.node_id,
        stage=use.stage if use else 0,
        times=(use.selected_at, use.validated_at, use.used_at) if use else (None, None, None),
        paths=paths,
    )


def provenance_of(row: TraceSource) -> dict[str, Any]:
    """The five members of which the source id is made, and the index's version of a live body."""
    shown = {
        "repo": row.repo,
        "type": row.type,
        "identity": row.identity,
        "version": row.version,
        "content_source": row.content_source,
    }
    return shown if row.index_updated_at is None else shown | {"index_updated_at": row.index_updated_at}


def _paths(row_ids: Sequence[UUID]) -> dict[UUID, tuple[tuple[Edge, ...], ...]]:
    """The paths of source rows, each a tuple of edges in walking order."""
    found: dict[UUID, dict[int, list[Edge]]] = {}
    edges = PathEdge.objects.filter(source_row_id__in=row_ids).order_by("source_row_id", "path_no", "step")
    for row_id, path_no, repo, src, dst, kind in edges.values_list(
        "source_row_id", "path_no", "repo", "src_slug", "dst_slug", "kind"
    ):
        found.setdefault(row_id, {}).setdefault(path_no, []).append(Edge(repo, src, dst, kind))
    return {row_id: tuple(map(tuple, paths.values())) for row_id, paths in found.items()}
