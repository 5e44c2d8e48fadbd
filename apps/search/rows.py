"""Rows of an answer, from whichever mode, in one form: what is shown, and what is identified."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.core import clock
from apps.retrieval import schemas as retrieved
from apps.retrieval.listing import ListedRow
from apps.retrieval.pages import PageRow
from apps.retrieval.schemas import Provenance
from apps.sources.identity import MEMORY, MEMORY_NODE, MEMORY_REPO, memory_version
from apps.traces.recording import ReturnedRow

# `asdict` copies deeply, which a row of numbers does not need.
FEATURE_NAMES = tuple(each.name for each in fields(retrieved.Features))
RAW_NAMES = tuple(each.name for each in fields(retrieved.Raw))


@dataclass(frozen=True, slots=True)
class Member:
    """A row that another one stands for."""

    node_id: UUID
    provenance: Provenance
    score: float | None = None
    status: str | None = None


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row of `results`. `content` is the whole text. `index_updated_at` is set where the text is a live one."""

    node_id: UUID
    rank: int
    provenance: Provenance
    title: str
    content: str
    kind: str
    subkind: str | None
    updated_at: datetime
    score: float | None = None
    path: str | None = None
    url: str | None = None
    labels: Sequence[str] = ()
    state: str | None = None
    event_at: datetime | None = None
    features: Mapping[str, float] | None = None
    components: Mapping[str, Any] = field(default_factory=dict)
    others: tuple[Member, ...] = ()
    version_status: str | None = None
    epistemic: str | None = None
    withdrawn: str | None = None
    index_updated_at: str | None = None

    def document(self, *, explain: bool, explicit: bool) -> dict[str, Any]:
        """The row as the API shows it, without what a node has not."""
        shown = {
            "node_id": str(self.node_id),
            "rank": self.rank,
            "score": self.score,
            "kind": self.kind,
            "subkind": self.subkind,
            "type": self.provenance.type,
            "title": self.title,
            "content": self.content,
            "path": self.path,
            "url": self.url,
            "labels": list(self.labels) or None,
            "state": self.state,
            "event_at": clock.iso(self.event_at) if self.event_at else None,
            "updated_at": clock.iso(self.updated_at),
            "version_status": self.version_status,
            "epistemic": self.epistemic if explicit else None,
            "withdrawn": self.withdrawn,
            "features": dict(self.features) if explain and self.features else None,
        }
        return {name: value for name, value in shown.items() if value is not None}


def of_retrieved(row: retrieved.Row) -> ShownRow:
    features = {name: getattr(row.features, name) for name in FEATURE_NAMES}
    raw = {name: value for name in RAW_NAMES if (value := getattr(row.raw, name)) is not None}
    steps = [
        {
            "kind": step.kind,
            "coefficient": step.coefficient,
            "source": str(step.source) if step.source else None,
        }
        for step in row.adjustments
    ]
    return ShownRow(
        node_id=row.node_id,
        rank=row.rank,
        provenance=_resolved(row.provenance, row.node_id, row.title, row.content),
        title=row.title,
        content=row.content,
        kind=row.kind,
        subkind=row.subkind,
        updated_at=row.updated_at,
        score=row.score,
        path=row.path,
        url=row.url,
        labels=row.labels,
        state=row.state,
        event_at=row.event_at,
        features=features,
        components={"features": features, "raw": raw} | ({"adjustments": steps} if steps else {}),
        others=tuple(Member(o.node_id, o.provenance, o.score, o.status) for o in row.others),
        version_status=row.version_status,
        epistemic=row.epistemic,
        withdrawn=row.withdrawn,
    )


def of_listed(row: ListedRow, rank: int) -> ShownRow:
    node, display = row.node, row.display
    given = Provenance(node.repo, node.type, node.identity, node.version, node.part or 0)
    return ShownRow(
        node_id=node.id,
        rank=rank,
        provenance=_resolved(given, node.id, display.title, display.content),
        title=display.title,
        content=display.content,
        kind=node.kind,
        subkind=node.subkind,
        updated_at=node.updated_at,
        path=node.path,
        url=display.url,
        labels=display.labels,
        state=display.state,
        event_at=node.event_at,
        others=tuple(
            Member(o.id, Provenance(o.repo, o.type, o.identity, o.version, o.part or 0)) for o in row.others
        ),
        epistemic=node.epistemic,
    )


def _resolved(given: Provenance, node_id: UUID, title: str, content: str) -> Provenance:
    """A node that is no passage is its own source, versioned by its words."""
    if given.type is not None or given.repo is not None:
        return given
    version = memory_version(title, content)
    return Provenance(MEMORY_REPO, MEMORY_NODE, str(node_id), version, content_source=MEMORY)


@dataclass(frozen=True, slots=True)
class GraphRow:
    """A row of `graph_results`. It has a hop and, with memory, a learned strength, which is not relevance."""

    page: PageRow
    learned_strength: float | None = None

    def document(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "node_id": str(self.page.node_id),
            "hop": self.page.hop,
            "type": self.page.provenance.type,
            "title": self.page.title,
            "slug": self.page.slug,
            "graph_path": [edge.shown() for edge in self.page.paths[0].edges],
        }
        if self.learned_strength is not None:
            shown["learned_strength"] = self.learned_strength
        return shown


def returned(rows: Sequence[ShownRow], graph: Sequence[GraphRow]) -> list[ReturnedRow]:
    """All rows to identify: results with the members of each, then the graph axis."""
    found: list[ReturnedRow] = []
    for index, row in enumerate(rows):
        place = f"results[{index}]"
        found.append(
            ReturnedRow(
                place,
                "keyword",
                row.node_id,
                row.provenance,
                rank=row.rank,
                score=row.score,
                components=row.components,
                index_updated_at=row.index_updated_at,
            )
        )
        found += [
            ReturnedRow(
                f"{place}.same_entity.others[{number}]",
                "keyword",
                member.node_id,
                member.provenance,
                under=place,
            )
            for number, member in enumerate(row.others)
        ]
    found += [
        ReturnedRow(
            f"graph_results[{index}]",
            "graph",
            row.page.node_id,
            row.page.provenance,
            graph_rank=index + 1,
            hop=row.page.hop,
            paths=row.page.paths,
        )
        for index, row in enumerate(graph)
    ]
    return found
