"""Answers to be recorded, without a search."""

import itertools
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from apps.core import clock
from apps.core.ids import uuid7
from apps.retrieval.schemas import Provenance
from apps.sources.identity import identify
from apps.traces.paths import Edge, PageNode, Path
from apps.traces.recording import ReturnedRow, record
from apps.traces.schemas import UseEntry
from apps.traces.services.save import NewTrace, SavedTrace, save_trace
from apps.traces.services.uses import record_uses

LADDER = ("selected", "validated", "used")
REPO = "acme/app"


def issue(number: int, version: str = "2026-01-02T03:04:05Z") -> Provenance:
    return Provenance(REPO, "issue", number, version)


def page(slug: str, version: str = "2026-01-02T03:04:05Z") -> Provenance:
    return Provenance(REPO, "wiki_doc", f"wiki/{slug}.md", version)


def mention(src: str, dst: str) -> Edge:
    return Edge(REPO, src, dst, "mention")


def walk(*slugs: str, edges: Sequence[Edge] | None = None) -> Path:
    """A path over pages; each edge points forward unless given."""
    given = edges or [mention(a, b) for a, b in itertools.pairwise(slugs)]
    return Path(tuple(given), tuple(PageNode(slug, page(slug)) for slug in slugs))


def ranked(provenance: Provenance, index: int = 0, **more: Any) -> ReturnedRow:
    fields = {"rank": index + 1, "score": 1.0 / (61 + index)} | more
    return ReturnedRow(f"results[{index}]", "keyword", None, provenance, **fields)


def graph_row(provenance: Provenance, paths: Sequence[Path], index: int = 0, **more: Any) -> ReturnedRow:
    fields = {"graph_rank": index + 1, "hop": len(paths[0].edges) if paths else 1} | more
    return ReturnedRow(f"graph_results[{index}]", "graph", None, provenance, paths=paths, **fields)


def save(rows: Sequence[ReturnedRow], **fields: Any) -> SavedTrace:
    """Save a trace of these rows in the session that is open."""
    given = {
        "mode": "search",
        "query": "how do pages mention each other",
        "request": {"limit": 10},
        "settings": {"mode": "search"},
        "scopes": None,
        "recorded_at": clock.now(),
        "latency_ms": 5,
    }
    return save_trace(new=NewTrace(recording=record(rows), **(given | fields)))


def source_of(provenance: Provenance) -> str:
    return identify(provenance).source_id


def climb(trace_id: UUID, source_id: str, *stages: str, key: str | None = None) -> dict[str, Any]:
    """The ladder of a source, up to `used` unless stages are given."""
    uses = [UseEntry(source_id=source_id, stage=stage) for stage in stages or LADDER]
    return record_uses(trace_id=trace_id, idempotency_key=key or str(uuid7()), uses=uses)
