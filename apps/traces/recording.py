"""What of an answer is recorded: every returned row identified alone, the rest named by position and reason.

Pure: nothing here reads or writes. An exception that is not `Unresolved` is a failure of the whole recording,
never an exclusion of one row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from uuid import UUID

from apps.retrieval.schemas import Provenance
from apps.sources.identity import SourceIdentity, Unresolved, identify
from apps.traces.paths import Edge, Path, verified

Axis = Literal["keyword", "graph"]
WITHHELD = "withheld"
UNVERIFIABLE_PATH = "unverifiable_graph_path"


@dataclass(frozen=True, slots=True)
class ReturnedRow:
    """A row of the answer, in any of its lists, with what a trace keeps of it.

    location: positional only, `results[i]`, `graph_results[i]`, `….same_entity.others[j]`.
    paths: all paths walked to a graph row; None for rows that no walk reached.
    under: the location of the row that stands for this one.
    withheld: shown redacted or denied between ranking and answer.
    """

    location: str
    axis: Axis
    node_id: UUID | None
    provenance: Provenance
    rank: int | None = None
    graph_rank: int | None = None
    hop: int | None = None
    score: float | None = None
    components: Mapping[str, Any] = field(default_factory=dict)
    paths: Sequence[Path] | None = None
    under: str | None = None
    index_updated_at: str | None = None
    withheld: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """What the answer says of one row: its source, or why it has none; why its path was not kept."""

    source_id: str | None
    identity: SourceIdentity | None = None
    exclusion: str | None = None
    path_exclusion: str | None = None
    index_updated_at: str | None = None

    def provenance(self) -> dict[str, Any]:
        """The provenance as the API shows it. Only for rows with a source."""
        assert self.identity is not None
        shown = self.identity.document()
        if self.index_updated_at is not None:
            shown["index_updated_at"] = self.index_updated_at
        return shown


@dataclass(frozen=True, slots=True)
class RecordedSource:
    """One source version of the trace, joined from all rows that showed it."""

    position: int
    source_id: str
    identity: SourceIdentity
    location: str
    axes: tuple[Axis, ...]
    node_id: UUID | None
    rank: int | None
    graph_rank: int | None
    hop: int | None
    score: float | None
    components: Mapping[str, Any]
    paths: tuple[tuple[Edge, ...], ...]
    folded_under: int | None
    index_updated_at: str | None


@dataclass(frozen=True, slots=True)
class Recording:
    """All of it: `document` is the answer's `memory_recording`, which the trace keeps, too."""

    sources: tuple[RecordedSource, ...]
    marks: Mapping[str, Mark]
    document: dict[str, Any]

    @property
    def unresolved(self) -> bool:
        """Rows were returned and none could be identified."""
        return bool(self.marks) and not self.sources


def record(rows: Sequence[ReturnedRow]) -> Recording:
    """Identify the rows of an answer, in the order in which they are shown."""
    marks = {row.location: _mark(row) for row in rows}
    kept: dict[str, RecordedSource] = {}
    for row in rows:
        mark = marks[row.location]
        if mark.source_id is not None:
            _keep(kept, row, mark)
    alone = {marks[row.location].source_id for row in rows if row.under is None}
    sources = tuple(_placed(s, marks, kept) if s.source_id not in alone else s for s in kept.values())
    return Recording(sources, marks, _document(sources, marks))


def _mark(row: ReturnedRow) -> Mark:
    if row.withheld:
        return Mark(None, exclusion=WITHHELD)
    try:
        identity = identify(row.provenance)
    except Unresolved as missing:
        return Mark(None, exclusion=missing.reason)
    path_exclusion = None
    if row.paths and not verified(row.paths):
        path_exclusion = UNVERIFIABLE_PATH
    return Mark(identity.source_id, identity, None, path_exclusion, row.index_updated_at)


def _keep(kept: dict[str, RecordedSource], row: ReturnedRow, mark: Mark) -> None:
    assert mark.source_id is not None
    assert mark.identity is not None
    seen = kept.get(mark.source_id)
    paths = verified(row.paths or ())
    if seen is None:
        kept[mark.source_id] = RecordedSource(
            position=len(kept),
            source_id=mark.source_id,
            identity=mark.identity,
            location=row.location,
            axes=(row.axis,),
            node_id=row.node_id,
            rank=row.rank,
            graph_rank=row.graph_rank,
            hop=row.hop,
            score=row.score,
            components=row.components,
            paths=paths,
            folded_under=None,
            index_updated_at=row.index_updated_at,
        )
        return
    kept[mark.source_id] = _joined(seen, row, paths)


def _joined(seen: RecordedSource, row: ReturnedRow, paths: tuple[tuple[Edge, ...], ...]) -> RecordedSource:
    """Axes united, the best rank with its score, the last paths that were verified."""
    better = row.rank is not None and (seen.rank is None or row.rank < seen.rank)
    graph_ranks = [rank for rank in (seen.graph_rank, row.graph_rank) if rank is not None]
    hops = [hop for hop in (seen.hop, row.hop) if hop is not None]
    return replace(
        seen,
        axes=seen.axes if row.axis in seen.axes else (*seen.axes, row.axis),
        rank=row.rank if better else seen.rank,
        score=row.score if better else seen.score,
        components=row.components if better else seen.components,
        graph_rank=min(graph_ranks, default=None),
        hop=min(hops, default=None),
        paths=paths or seen.paths,
        index_updated_at=seen.index_updated_at or row.index_updated_at,
    )


def _placed(
    source: RecordedSource, marks: Mapping[str, Mark], kept: Mapping[str, RecordedSource]
) -> RecordedSource:
    """With the position of the source that stands for it, where that one has been identified."""
    above = marks[source.location.split(".", 1)[0]].source_id
    return replace(source, folded_under=kept[above].position if above is not None else None)


def _document(sources: Sequence[RecordedSource], marks: Mapping[str, Mark]) -> dict[str, Any]:
    exclusions = [
        {"location": location, "reason": mark.exclusion}
        for location, mark in marks.items()
        if mark.exclusion is not None
    ]
    paths = [
        {"location": location, "reason": mark.path_exclusion}
        for location, mark in marks.items()
        if mark.path_exclusion is not None
    ]
    status = "complete" if not exclusions else "partial" if sources else "unresolved"
    return {
        "status": status,
        "recorded_sources": len(sources),
        "excluded_sources": len(exclusions),
        "exclusions": exclusions,
        "excluded_graph_paths": len(paths),
        "graph_exclusions": paths,
    }
